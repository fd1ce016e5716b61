"""What llama.cpp has read of an example is kept for later questions on it, whatever was read in between."""

from __future__ import annotations


class TwoSlots:
    """Which of a server's two slots answers a request; one request is under way at a time.

    Left alone, llama.cpp's server keeps a conversation only where the next one shares less than half of it, so that
    examples judged with a long prompt push each other out; and where it looks for a kept one, which it takes out of its
    memory, it may use up one example's for a few tokens more of another's. (``get_available_slot`` and
    ``server_prompt_cache::load`` of the llama.cpp in xllamacpp 2026.10.) So requests say where they go:

    - The example is in a slot: there. Only what comes after the shared part is read.
    - It is new: the slot that was not used last. The other one is idle then, and llama.cpp saves idle slots into its
      memory (``--cache-idle-slots``), each conversation once.
    - It was there before: no slot is named. With a similarity of 0 llama.cpp takes the slot not used last and
      loads the conversation from its memory that shares most.

    A wrong guess costs time, never an answer: llama.cpp compares the tokens themselves.
    """

    def __init__(self) -> None:
        """Both slots are empty."""
        self._held: list[int | None] = [None, None]
        self._last = 1
        self._seen: set[int] = set()

    def slot_for(self, prefix: str) -> int | None:
        """The slot, 0 or 1, for a request that begins with ``prefix``; None leaves it to the server."""
        example = hash(prefix)
        if example in self._held:
            self._last = self._held.index(example)
            return self._last
        self._last = 1 - self._last
        self._held[self._last] = example
        if example in self._seen:
            return None
        self._seen.add(example)
        return self._last
