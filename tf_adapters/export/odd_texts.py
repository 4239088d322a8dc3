"""Unusual texts on which two tokenizers are compared.

Texts on which a `TextPacker` is known to differ from the original tokenizer are
left out: combining characters after a ligature or a similar character, because
SentencePiece does not compose their normal form.
"""

import numpy as np

_PARTS = (
    "the film|was|NOT|good.|it's | the|re-enter|they'll|fishing|watered|don't|"
    "WE'RE|(why?)|\"quoted\"|``so''|3.14|1,250.75|9,|12|€5|a/b|x@y.com|#|##s|-|"
    "_|…|½|ﬁ|Ⅷ|１２|Ω|ß|cafe|Élan|naïve|İz|e\u0301|I\u0307|x\u0301y|ёлка|Привет|"
    "ΟΔΟΣ|電影|日本の|한국어|हिन्दी|२०१६|نص|😀|🇩🇪|👍🏽||  |\t|\n|\n\n|"
    "no\u00a0break|\u00a0|\u2028|wide\u3000space|\u200b|\ufeff|co\u00adop|a\x00b|"
    "\x07|▁|Ġ|[SEP]|[CLS]|[MASK]|[UNK]|[PAD]|<s>|</s>|<unk>|<mask>|<pad>"
).split("|") + ["ข" * 40, "я" * 51, "я" * 101]
_ENDS = (" ", " ", " ", "")


def make(count: int = 1000) -> list[str]:
    """Returns a list of `count` texts of up to 11 words or symbols.

    The texts are the same in every call.
    """
    generator = np.random.default_rng(0)
    return [
        "".join(
            part + end
            for part, end in zip(
                generator.choice(_PARTS, size),
                generator.choice(_ENDS, size),
                strict=True,
            )
        )
        for size in generator.integers(0, 12, count)
    ]
