"""The dead-letter queue in memory, for its administration."""

from __future__ import annotations

from collections.abc import Sequence

from orbweaver.frontier.dead_letters import DeadLetter
from orbweaver.frontier.messages import MessageSource
from orbweaver.model.ports import Clock
from tests.memory.world import Gate, Gated, Mail, World, open_gate


class MemoryDeadLetters(Gated):
    """Dead letters; a letter that is taken is hidden for a time."""

    def __init__(self, world: World, gate: Gate = open_gate, *, clock: Clock) -> None:
        super().__init__(world, gate)
        self._clock = clock

    async def take(self, count_max: int, hold_s: int) -> tuple[DeadLetter, ...]:
        def act() -> tuple[DeadLetter, ...]:
            now_ms = self._clock.now_ms()
            looks = self._world.looks
            due = [mail for mail in self._world.buried if looks.get(mail.id, (0, 0))[1] <= now_ms]
            for mail in due[:count_max]:
                looks[mail.id] = (looks.get(mail.id, (0, 0))[0] + 1, now_ms + hold_s * 1000)
            return tuple(self._letter(mail) for mail in due[:count_max])

        return await self._do("dead_letters.take", act)

    async def put_back(self, letters: Sequence[DeadLetter]) -> None:
        def act() -> None:
            for letter in letters:
                receives, _ = self._world.looks.get(letter.id, (0, 0))
                self._world.looks[letter.id] = (receives, 0)

        await self._do("dead_letters.put_back", act)

    async def delete(self, letters: Sequence[DeadLetter]) -> None:
        gone = {letter.id for letter in letters}

        def act() -> None:
            held = self._world.buried
            held[:] = [mail for mail in held if mail.id not in gone]

        await self._do("dead_letters.delete", act)

    async def resend(
        self, bodies: Sequence[str], source: MessageSource = MessageSource.PACKS
    ) -> None:
        for body in bodies:
            mail = Mail(body=body, source=source)
            await self._do("queue.send", lambda mail=mail: self._world.sent.append(mail))  # type: ignore[misc]

    def _letter(self, mail: Mail) -> DeadLetter:
        return DeadLetter(
            id=mail.id,
            body=mail.body,
            reason=mail.reason,
            receives=self._world.looks[mail.id][0],
            sent_at_ms=mail.at_ms,
            source=mail.source,
        )
