"""The simulated mind: texts that come at set times, whatever the media says."""

from loadbench.simulator.behave import Course, ns, pieces, prefixes
from loadbench.simulator.mouth import Deed
from loadbench.simulator.playing import Playing
from loadbench.simulator.sitting import Sitting


class Timetable:
    """Says the answer of one utterance by the clock: partials from the first chunk, finals from the end mark."""

    def __init__(self, sitting: Sitting, course: Course) -> None:
        self._sitting = sitting
        self._course = course
        self._options = sitting.house.options
        self._spoilt: dict[tuple[str | None, str], str] = {}
        self._early = self._options.premature_s is not None
        self._count = self._empties = 0
        self._final = self._said = False
        self._plays = [Playing(sitting, name, course, self._settle) for name in sitting.house.speaker.media]

    def ready(self, now_ns: int) -> None:
        """The opening is over: what comes before its sound is due."""
        if self._options.premature_s is not None and self._course.final:
            self._sitting.mouth.at(now_ns + ns(self._options.premature_s), self._premature)

    def begin(self, now_ns: int) -> None:
        """Partials begin, `first_s` from now, and output media `media_first_s` from now."""
        for play in self._plays:
            play.begin(now_ns)
        if self._early:
            return
        first_ns = 0 if self._sitting.cached else self._course.first_ns
        count = self._options.empty_partials
        for at in range(count):
            self._sitting.mouth.at(now_ns + first_ns * (at + 1) // (count + 1), self._empty)
        self._sitting.mouth.at(now_ns + first_ns, self._partial)

    def chunk(self, payload: bytes) -> None:
        """Nothing follows from media itself."""

    def end(self, now_ns: int) -> None:
        """Finals come from now on, at their times."""
        sitting, course = self._sitting, self._course
        for play in self._plays:
            play.end(now_ns)
        if self._options.service_s is not None or self._early or not course.final:
            sitting.leave_at(now_ns + course.service_ns)
        if not course.final:
            sitting.entry.outcome = "no_final"
        elif self._early:
            self._said = True
            self._settle(now_ns)
        else:
            delays_ns = (0,) * len(course.finals_ns) if sitting.cached else course.finals_ns
            for at, delay_ns in enumerate(delays_ns):
                sitting.mouth.at(now_ns + delay_ns, self._piece(at, len(delays_ns)))

    def gone(self) -> None:
        """There is nothing to stop: the mouth is silent by now."""

    def _settle(self, now_ns: int) -> None:
        """What is to be said has been said when the last final is out and the last piece of media."""
        if self._said and all(play.over for play in self._plays):
            self._sitting.finals_over(now_ns)

    def _piece(self, at: int, count: int) -> Deed:
        async def deed(now_ns: int) -> None:
            self._final = True
            texts = self._texts().items()
            await self._sitting.say_final(
                {name: pieces(text, count, glosses=self._glosses(name))[at] for name, text in texts}
            )
            if at == count - 1:
                if self._options.service_s is None:
                    self._sitting.leave()
                self._said = True
                self._settle(now_ns)

        return deed

    async def _premature(self, _: int) -> None:
        self._final = True
        await self._sitting.say_final(self._texts())

    async def _empty(self, _: int) -> None:
        await self._sitting.say_partial(dict.fromkeys(self._sitting.house.speaker.channels, "  " * (self._empties % 2)))
        self._empties += 1

    async def _partial(self, now_ns: int) -> None:
        if self._final:
            return
        grown = {name: self._grown(name, text) for name, text in self._texts().items()}
        await self._sitting.say_partial(
            {name: parts[min(self._count, len(parts) - 1)] for name, parts in grown.items()}
        )
        self._count += 1
        if self._options.partial_every_s:
            self._sitting.mouth.at(now_ns + ns(self._options.partial_every_s), self._partial)

    def _grown(self, channel: str, text: str) -> list[str]:
        """What partials say one after the other; the last word is kept for a final that nothing else would mark."""
        parts = prefixes(text, glosses=self._glosses(channel)) or [""]
        return parts if self._sitting.house.speaker.marks_final(channel) else parts[:-1] or parts

    def _texts(self) -> dict[str, str]:
        """The answer on each channel, with its wrong words; the same at each call while the clip is."""
        house = self._sitting.house
        clip = self._sitting.recall.clip(over=self._sitting.entry.end_ns is not None)
        self._sitting.entry.clip = self._sitting.entry.clip or clip
        texts = {}
        for name in house.speaker.channels:
            if (clip, name) not in self._spoilt:
                self._spoilt[clip, name] = house.slips.spoil(
                    house.answers.text(clip, name), glosses=self._glosses(name)
                )
            texts[name] = self._spoilt[clip, name]
        return texts

    def _glosses(self, channel: str) -> bool:
        """Whether what is said there are glosses, each whole in any script."""
        return self._sitting.house.profile.channels[channel].unit == "gloss"
