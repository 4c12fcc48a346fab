"""Plays a session to its end without anything outside: one due task after another is answered, in any order."""

from __future__ import annotations

from random import Random

from marg_ray.folding import apply
from marg_ray.messages import (
    LimitReached,
    Message,
    PlanDecided,
    ReviewDecided,
    SessionPaused,
    SessionResumed,
    Steered,
)
from marg_ray.records import Hit, Limits, SourceKind
from marg_ray.routing import next_tasks, waiting_for
from marg_ray.state import ResearchState
from marg_ray.tasks import ReviewTask
from tests.answers import answer, started

STEPS = 3000  # far above any legal run


class Walk:
    """A session whose agents answer by chance. With `steering` its owner interferes as often as that says."""

    def __init__(self, seed: int, failing: float = 0.0, steering: float = 0.0, **fields: object) -> None:
        self.chance, self.failing, self.steering = Random(seed), failing, steering
        first = started(**fields)
        self.log: list[Message] = [first]
        self.state = apply(ResearchState(), first)
        self.issued: list[str] = []
        self.rounds = 0
        self.steered = 0

    def say(self, message: Message) -> None:
        before = self.state
        self.state = apply(before, message)
        if self.state is not before:
            self.log.append(message)
        assert apply(self.state, message) == self.state, "a message delivered twice changed something"

    def step(self) -> bool:
        due = next_tasks(self.state)
        ids = [t.id for t in due]
        assert len(ids) == len(set(ids)), "the same task is due twice"
        if not due:
            return False
        if self.steered < 12 and self.chance.random() < self.steering:
            self.steered += 1
            self.say(self._wish())
            return True
        task = self.chance.choice(due)
        self.issued.append(task.id)
        self.rounds += isinstance(task, ReviewTask)
        self.say(answer(task, self.chance, failing=self.failing))
        return True

    def run(self) -> Walk:
        for _ in range(STEPS):
            if not self.step():
                waiting = waiting_for(self.state)
                if waiting == "plan":
                    self.say(PlanDecided(task_id=f"plan/{len(self.log)}", approved=self.chance.random() < 0.7))
                elif waiting == "review":
                    self.say(ReviewDecided(task_id=f"gate/{len(self.log)}", decision="approve"))
                elif self.state.paused or (self.state.halt is not None and self.state.halts < 8):
                    self.say(SessionResumed(task_id=f"resume/{len(self.log)}"))
                elif self.state.halt is not None:
                    self.failing = 0.0
                    self.say(SessionResumed(task_id=f"resume/{len(self.log)}"))
                else:
                    return self
        raise AssertionError("the run did not end")

    def _wish(self) -> Message:
        """Something that an owner, or the clock, may say at any time."""
        task_id = f"wish/{self.steered}"
        sections = list(self.state.sections)
        section = self.chance.choice(sections) if sections and self.chance.random() < 0.6 else ""
        locations = sorted({r.hit.location for s in self.state.sections.values() for r in s.reads}) or ["x.test"]
        queries = [q.query for s in self.state.sections.values() for q in s.searches] or ["no such query"]
        hit = Hit(location="https://pinned.test/a", title="Pinned", kind=SourceKind.WEB)
        steers: list[Message] = [
            Steered(task_id=task_id, action="add", section=section, query=f"what of point {self.steered}?"),
            Steered(task_id=task_id, action="drop", section=section or (sections or ["s1"])[0]),
            Steered(task_id=task_id, action="drop", query=self.chance.choice(queries)),
            Steered(task_id=task_id, action="pin", section=section, hit=hit),
            Steered(task_id=task_id, action="ban", location=self.chance.choice(locations)),
            Steered(task_id=task_id, action="raise", limits=Limits(tokens=10**6, tasks=10**4)),
            LimitReached(task_id=task_id, limit="seconds", detail="time is up", hard=self.chance.random() < 0.5),
            SessionPaused(task_id=task_id),
        ]
        return self.chance.choice(steers)
