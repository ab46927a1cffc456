"""Repetitions: a scheduled prompt with a new report each time, a question asked before it was answered, a statement made
again and again. Memory repeats itself in every agent that runs for months; what is returned should not."""

from collections.abc import Sequence

from memplane.config import Settings
from memplane.space import Space
from memplane_eval.returned.received import Shown, plane_blocks, recalled
from memplane_eval.returned.samples import TOKENS, Samples
from memplane_eval.returned.workbench import Workbench, days_ago

GROUP = "repetition"
REPORT = "scheduled prompt: report in the text"
PROMPT_ONCE = "scheduled prompt: at most one copy of the prompt"
REPORT_IN_BLOCKS = "scheduled prompt: report in 8 blocks"
PROMPT_ONCE_IN_BLOCKS = "scheduled prompt: at most one block with the prompt"
NEXT_RUN = "scheduled prompt, next run: a report in the text and in 8 blocks, not the prompt"
ANSWER = "question asked 8 times: its answer in the text"
NO_QUESTION = "question asked 8 times: not returned itself"
ONCE = "statement made 10 times: exactly one line"

_ASKED = 8
_STATED = 10
_PROMPT = "Scheduled task: check the servers, the mailbox and the calendar, and report anything that needs attention."

_REPORTS = (
    ("The backup of the photo archive failed because the disk in bay 4 is full.", "Why did the photo archive not get backed up?"),
    ("Two invoices from the printing company are overdue since Tuesday.", "Do we owe the printing company any money?"),
    ("The TLS certificate of shop.example expires in nine days.", "When does the certificate of the shop run out?"),
    ("Marta asked to move the budget meeting to Thursday at 14:00.", "What did Marta want changed about the budget meeting?"),
    ("The queue of the mail server grew to 4,000 messages after a spam wave.", "What happened to the mail queue?"),
    ("The landlord announced that the water is off on Friday morning.", "When will there be no water in the office?"),
    ("Login errors doubled; most come from an old version of the Android app.", "Which app version causes the login errors?"),
    ("The courier could not deliver the new monitors and left them with the bakery.", "Where are the new monitors?"),
    ("Database replica beta lags by eleven minutes behind the primary.", "How far behind is replica beta?"),
    ("Jonas wrote that the contract with Fjordline is signed.", "Is the Fjordline deal done?"),
    ("The calendar has two interviews at the same time on the 12th.", "Are there clashing interviews?"),
    ("Fan number 2 of the rack runs at half speed and should be replaced.", "Which fan has to be replaced?"),
    ("A customer from Graz reports that the PDF export cuts off the last page.", "Who complained about the PDF export?"),
    ("The domain heronworks.example was renewed for three years.", "For how long is heronworks renewed?"),
    ("The nightly build broke: the linter found an unused import in billing.", "Why is the nightly build red?"),
    ("The insurance wants photos of the damaged window by the 20th.", "What does the insurance company need from us?"),
    ("Traffic from Brazil tripled after a post in a gardening forum.", "Where do all the Brazilian visitors come from?"),
    ("The tax office sent a reminder for the quarterly declaration.", "Did the tax authority write to us?"),
    ("Server kestrel was rebooted after a kernel update, all services are up.", "Why was kestrel down?"),
    ("Priya is ill until Wednesday, her support shift is open.", "Who covers support while Priya is sick, is the shift taken?"),
)  # fmt: skip
"""Reports of a scheduled task, each with a question about it."""

_ANSWERED = (
    ("When is our water meter read?", "The utility called: somebody comes on 14 March between nine and eleven."),
    ("What is the wifi password of the cabin?", "Found it on the fridge at the cabin: the wifi is maple-otter-77."),
    ("Who repairs the piano?", "Mrs Lindqvist tuned and repaired the piano today, she was great."),
    ("Where did I park the trailer?", "The trailer stands behind the old sawmill, I just saw it there."),
    ("Which size are the skis?", "I measured the skis, they are 172 centimetres long."),
)  # fmt: skip
"""Questions that were asked long before somebody gave the answer."""

_STATEMENTS = (
    ("My flight to Osaka leaves on 3 September.", "When do I fly to Japan?"),
    ("Grandma's soup needs a pinch of nutmeg.", "What spice belongs into grandma's soup?"),
    ("The boiler makes a knocking sound in the morning.", "What is wrong with the boiler?"),
    ("I am training for the half marathon in Turin.", "Which race am I preparing for?"),
    ("Our cat Pixel is afraid of the vacuum cleaner.", "What scares Pixel?"),
)
"""Statements, each with a question that it answers."""

_CHATTER = (
    "I watered the tomatoes this evening, they look well.",
    "The tram was late again and completely full.",
    "Lunch was a cheese sandwich, nothing special.",
    "I finally finished the novel about the lighthouse keeper.",
    "It rained all afternoon, so we played cards.",
    "My colleague told a long story about his new bicycle.",
    "I cleaned the kitchen and sorted the spice rack.",
    "We watched a documentary about deep sea fish.",
)


def measure_repetition(samples: Samples, workbench: Workbench) -> None:
    with workbench.space() as space:
        _scheduled(samples, space)
    for question, answer in _ANSWERED:
        with workbench.space() as space:
            _asked_before(samples, space, question, answer)
    with workbench.space() as space:
        _stated(samples, space)


def _scheduled(samples: Samples, space: Space) -> None:
    for run, (report, _) in enumerate(_REPORTS):
        at = days_ago(len(_REPORTS) - run)
        space.retain(_PROMPT, conversation=f"run{run}", at=at)
        space.retain(report, role="assistant", conversation=f"run{run}", at=at)
    space.enrich()
    for report, question in _REPORTS:
        found = recalled(space, question)
        shown = Shown(found.text)
        samples.add(GROUP, REPORT, float(shown.has(report)))
        samples.add(GROUP, PROMPT_ONCE, float(shown.copies(_PROMPT) <= 1))
        samples.add(GROUP, TOKENS, found.tokens)
        blocks = Shown(plane_blocks(space, question, Settings()))
        samples.add(GROUP, REPORT_IN_BLOCKS, float(blocks.has(report)))
        samples.add(GROUP, PROMPT_ONCE_IN_BLOCKS, float(blocks.copies(_PROMPT) <= 1))
    for shown in (Shown(recalled(space, _PROMPT).text), Shown(plane_blocks(space, _PROMPT, Settings()))):
        reported = any(shown.has(report) for report, _ in _REPORTS)
        samples.add(GROUP, NEXT_RUN, float(reported and not shown.copies(_PROMPT)))


def _asked_before(samples: Samples, space: Space, question: str, answer: str) -> None:
    for time in range(_ASKED):
        _retain_day(space, [question, _CHATTER[time % len(_CHATTER)]], time, days=30 - time)
    _retain_day(space, [answer], _ASKED, days=10)
    space.enrich()
    found = recalled(space, question)
    shown = Shown(found.text)
    samples.add(GROUP, ANSWER, float(shown.has(answer)))
    samples.add(GROUP, NO_QUESTION, float(not shown.copies(question)))
    samples.add(GROUP, TOKENS, found.tokens)


def _stated(samples: Samples, space: Space) -> None:
    for time in range(_STATED):
        said = [statement for statement, _ in _STATEMENTS]
        _retain_day(space, [*said, _CHATTER[time % len(_CHATTER)]], time, days=40 - time)
    space.enrich()
    for statement, question in _STATEMENTS:
        found = recalled(space, question)
        samples.add(GROUP, ONCE, float(Shown(found.text).copies(statement) == 1))
        samples.add(GROUP, TOKENS, found.tokens)


def _retain_day(space: Space, texts: Sequence[str], conversation: int, *, days: int) -> None:
    for text in texts:
        space.retain(text, conversation=f"day{conversation}", at=days_ago(days))
