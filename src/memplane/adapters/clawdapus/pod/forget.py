"""`memplane memory forget`: forget entries in a memory service, and record tombstones for them."""

from collections.abc import Iterable, Sequence

import msgspec

from memplane.adapters.clawdapus.memory_client import BlockingMemoryClient, ServiceForgetRequest
from memplane.adapters.clawdapus.pod.backfill import refusal
from memplane.adapters.clawdapus.pod.directory import PodDirectory
from memplane.adapters.clawdapus.pod.targets import Target
from memplane.adapters.clawdapus.pod.tombstones import ServiceTombstone, append_tombstones, tombstoned_ids
from memplane.adapters.clawdapus.session_history import read_session
from memplane.clock import Clock, system_clock
from memplane.errors import InvalidRequest
from memplane.ledger.history import HistoryLine


class PodForget(msgspec.Struct, frozen=True, kw_only=True):
    """The ids for one agent's service to forget, and how many of the given ids were forgotten before."""

    target: Target
    entry_ids: tuple[str, ...]
    skipped: int = 0


def split_ids(given: Iterable[str]) -> list[str]:
    ids = list(dict.fromkeys(it.strip() for it in given if it.strip()))
    if not ids:
        raise InvalidRequest("at least one --entry-id is required", field="entry_id")
    return ids


def plan_forget(
    directory: PodDirectory, service: str, targets: Sequence[Target], ids: Sequence[str], *, named: bool
) -> list[PodForget]:
    """Check every agent before sending anything, so that a wrong id changes nothing.

    Agents in `named` must have every id in their history. Without names, each agent forgets the ids that it has, and
    an id that no agent has is an error.
    """
    plans = [_plan(directory, service, target, ids, named=named) for target in targets]
    if not named:
        known = {id_ for plan, met in plans for id_ in (*plan.entry_ids, *met)}
        _refuse_missing("", [id_ for id_ in ids if id_ not in known])
    return [plan for plan, _ in plans]


def _plan(
    directory: PodDirectory, service: str, target: Target, ids: Sequence[str], *, named: bool
) -> tuple[PodForget, set[str]]:
    """The plan, and the ids that were forgotten before."""
    buried = tombstoned_ids(directory, target.agent, service) & set(ids)
    open_ids = [id_ for id_ in ids if id_ not in buried]
    there = _present(directory, target.agent, open_ids, required=named) if open_ids else set()
    if named:
        _refuse_missing(f'forget "{target.agent}": ', [id_ for id_ in open_ids if id_ not in there])
    wanted = tuple(id_ for id_ in open_ids if id_ in there)
    return PodForget(target=target, entry_ids=wanted, skipped=len(buried)), buried


def forget_at_service(
    client: BlockingMemoryClient,
    directory: PodDirectory,
    wanted: PodForget,
    *,
    reason: str,
    url: str,
    clock: Clock = system_clock,
) -> int:
    """Call the service, then write the tombstones. After an interruption between the two, running it again is safe."""
    target = wanted.target
    if not wanted.entry_ids:
        return 0
    request = ServiceForgetRequest(context=target.context, entry_ids=wanted.entry_ids, reason=reason)
    outcome = client.forget(target.manifest, request, url=url)
    if not outcome.ok:
        raise InvalidRequest(f'forget "{target.agent}": {refusal(outcome)}')
    service = target.manifest.service
    now = clock()
    append_tombstones(
        directory,
        target.agent,
        [ServiceTombstone(now, target.agent, service, id_, reason) for id_ in wanted.entry_ids],
    )
    return len(wanted.entry_ids)


def _present(directory: PodDirectory, agent: str, ids: Sequence[str], *, required: bool) -> set[str]:
    """The given ids that are in an agent's history, including rotated files."""
    folder = directory.history(agent)
    if folder is None:
        if required:
            raise InvalidRequest(f'no session history found at "{directory.history_path(agent)}"')
        return set()
    missing = set(ids)
    with folder:
        reader = read_session(folder)
        for item in reader:
            if isinstance(item, HistoryLine):
                missing.discard(item.id)
            if not missing:
                break
        reader.close()
    return set(ids) - missing


def _refuse_missing(prefix: str, missing: Sequence[str]) -> None:
    if missing:
        noun = "id" if len(missing) == 1 else "ids"
        raise InvalidRequest(f"{prefix}history does not contain entry {noun} {', '.join(missing)}")
