"""EntraBot's daily summary: sort, render, send and archive."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from memplane.adapters.entrabot.errors import TokenExpiredError
from memplane.adapters.entrabot.storage.backend import get_backend
from memplane.errors import InvalidRequest
from memplane.sync import summaries
from memplane.sync.interactions import day_of
from memplane.sync.summaries import Buckets as SummaryBuckets

__all__ = [
    "GRAPH_SENDMAIL_URL",
    "SummaryBuckets",
    "archive_summary",
    "next_run_at",
    "render_summary_html",
    "run_daily_summary",
    "send_summary_email",
    "triage_interactions",
]

GRAPH_SENDMAIL_URL: Final = "https://graph.microsoft.com/v1.0/me/sendMail"

_UNAUTHORIZED = 401


def triage_interactions(entries: Iterable[dict[str, Any]], *, agent_upn: str | None = None) -> SummaryBuckets:
    return summaries.triage(entries, agent=agent_upn)


def render_summary_html(buckets: SummaryBuckets, *, day: str) -> str:
    return summaries.render(buckets, day=day)


def archive_summary(*, day: str, html: str, buckets: SummaryBuckets) -> str:
    """Archive the page and its counts; returns the key of the page."""
    try:
        return summaries.archive(get_backend(), day=day, html=html, buckets=buckets)
    except InvalidRequest as exc:
        raise ValueError(str(exc)) from exc


def next_run_at(*, now: datetime, hour_pdt: int = summaries.HOUR) -> datetime:
    return summaries.next_run_at(now, hour=hour_pdt)


async def send_summary_email(*, token: str, html: str, subject: str, to: list[str]) -> None:
    """Send a page through Microsoft Graph as the token's user. Raises `TokenExpiredError` if the token is rejected."""
    message = {
        "subject": subject,
        "body": {"contentType": "HTML", "content": html},
        "toRecipients": [{"emailAddress": {"address": address}} for address in to],
    }
    async with httpx.AsyncClient() as client:
        response = await client.post(
            GRAPH_SENDMAIL_URL,
            headers={"Authorization": f"Bearer {token}"},
            json={"message": message, "saveToSentItems": True},
        )
    if response.status_code == _UNAUTHORIZED:
        raise TokenExpiredError("the token has expired, or may not send mail")
    response.raise_for_status()


async def run_daily_summary(
    *,
    day: str | None = None,
    agent_upn: str | None = None,
    token: str | None = None,
    to: list[str] | None = None,
) -> dict[str, Any]:
    """Summarize a day (default: today in UTC), archive the page, and send it if there are a token and recipients."""
    found = summaries.summarize(get_backend(), day or day_of(datetime.now(UTC)), agent=agent_upn)
    sent_to = list(to or []) if token else []
    if token and sent_to:
        subject = f"Daily summary — {found.day}"
        await send_summary_email(token=token, html=found.html, subject=subject, to=sent_to)
    return {"day": found.day, "counts": found.counts, "archive": found.archive, "sent_to": sent_to}
