"""Rules about words: names, stop words, backchannel, word boundaries."""

import re

STOP_PHRASES = ["stop", "wait", "hold on", "no no"]
BACKCHANNEL = ["mhm", "yeah", "right", "okay"]

# Scripts that are written without spaces: Thai, Lao, Burmese, Khmer, kana, Han, compatibility Han.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)


def _unspaced(char):
    return any(low <= ord(char) <= high for low, high in _UNSPACED)


def spans(text):
    """The words of `text` as (first, end) character offsets. Punctuation belongs to the word before it."""
    found, before = [], " "
    for i, char in enumerate(text):
        if char.isspace():
            pass
        elif not found or before.isspace() or (_unspaced(char) or _unspaced(before)) and char.isalnum():
            found.append((i, i + 1))
        else:
            found[-1] = (found[-1][0], i + 1)
        before = char
    return found


def fold(text):
    """The words of `text` after case folding, without punctuation."""
    words = (re.sub(r"[^\w]|_", "", text[a:b].casefold()) for a, b in spans(text))
    return [word for word in words if word]


def _starts_with(words, phrase):
    return bool(phrase) and words[: len(phrase)] == phrase


class Words:
    """The word lists of a language and the names of the companions present."""

    def __init__(self, stop=None, backchannel=None):
        self.stop = [fold(p) for p in (STOP_PHRASES if stop is None else stop)]
        listed = BACKCHANNEL if backchannel is None else backchannel
        self.listed = {w for p in listed for w in fold(p)}
        self.names = {}

    def join(self, companion, names):
        self.names[companion] = [fold(n) for n in [companion, *names] if fold(n)]

    def leave(self, companion):
        self.names.pop(companion, None)

    def addressed(self, text):
        """The companions present whose name or alias occurs as whole words, in order of names."""
        words = fold(text)
        return [
            companion
            for companion, names in sorted(self.names.items())
            if any(words[i : i + len(n)] == n for n in names for i in range(len(words)))
        ]

    def after_names(self, text):
        """The folded words of `text` without the companions' names at its beginning."""
        words, names = fold(text), [n for names in self.names.values() for n in names]
        while True:
            name = max((n for n in names if _starts_with(words, n)), key=len, default=None)
            if name is None:
                return words
            words = words[len(name) :]

    def is_stop(self, text):
        words = self.after_names(text)
        return any(_starts_with(words, phrase) for phrase in self.stop)

    def is_only_stop(self, text):
        """True when nothing but stop phrases (and names before them) is said."""
        return self._only_stop(self.after_names(text))

    def is_alone(self, text):
        """True when nothing but stop phrases is said."""
        return self._only_stop(fold(text))

    def _only_stop(self, words):
        if not words:
            return False
        while words:
            phrase = max((p for p in self.stop if _starts_with(words, p)), key=len, default=None)
            if phrase is None:
                return False
            words = words[len(phrase) :]
        return True

    def is_backchannel(self, text):
        words = fold(text)
        return bool(words) and all(word in self.listed for word in words)
