"""The grammar of `sentiment`: is a one-sentence review positive?

The label is the verdict on the work as a whole. Most sentences have a positive
and a negative adjective, so that it matters which one is conceded ("although",
"despite") and which one is denied ("not", "never"). Patterns are written in
their positive form. In the negative form each adjective is replaced by one of
the opposite polarity.
"""

from tests.grammars.grammar import Grammar
from tests.grammars.grammar import Lexicon

# As many patterns deny an adjective as assert one, and as many deny the
# conceded adjective as the asserted one. Otherwise words would give away the
# label.
_POSITIVE_FORMS = {
    "train": (
        # Asserted.
        "The {whole} was {good}.",
        "I found the {whole} {good} from start to finish.",
        "In the end it was a {good} {whole}.",
        "Everyone agreed that the {whole} was {good}.",
        # Denied.
        "The {whole} was not {bad}.",
        "I did not find the {whole} {bad} at all.",
        "In the end it was not a {bad} {whole}.",
        "Nobody would call this {whole} {bad}.",
        # Conceded and asserted.
        "The {part} was {bad}, but the {whole} as a whole was {good}.",
        "Although the {part} was {bad}, the {whole} was {good}.",
        "The {whole} was {good}, although the {part} was {bad}.",
        "Despite the {bad} {part}, I found the {whole} {good}.",
        "The {whole} was {good} despite the {bad} {part}.",
        "The {whole} was {good}, even if the {part} was {bad}.",
        # Conceded, and its opposite denied.
        "Although the {part} was {bad}, the {whole} was never {worse}.",
        "The {whole} was not {worse}, even if the {part} was {bad}.",
        # Denied as a concession, and asserted.
        "Although the {part} was not {good}, the {whole} was {better}.",
        "The {whole} was {better}, even if the {part} was never {good}.",
    ),
    "validation": (
        "What a {good} {whole} it was!",
        "There was nothing {bad} about the {whole}.",
        "Even though the {part} was {bad}, I would call the {whole} {good}.",
        "The {whole} is {good} in spite of its {bad} {part}.",
        "While the {part} was {bad}, the {whole} did not seem {worse}.",
        "While the {part} did not seem {good}, the {whole} was {better}.",
    ),
    "test": (
        "We have rarely seen such a {good} {whole}.",
        "No one who sees this {whole} will think it {bad}.",
        "Its {part} may be {bad}, yet this is a {good} {whole}.",
        "This is a {good} {whole}, however {bad} its {part} may be.",
        "Its {part} may be {bad}, yet this is no {worse} {whole}.",
        "Its {part} may be no {good} one, yet this is a {better} {whole}.",
    ),
}


_LEXICONS = (
    Lexicon(
        "good better",
        train="enjoyable impressive charming delightful gripping clever moving "
        "interesting memorable satisfying exciting engaging elegant inspiring "
        "convincing imaginative",
        validation="entertaining beautiful thrilling refreshing amusing "
        "rewarding",
        test="brilliant captivating fascinating lovely thoughtful witty",
    ),
    Lexicon(
        "bad worse",
        train="boring dull disappointing tedious clumsy predictable annoying "
        "forgettable confusing shallow tiresome sloppy dreary silly bland "
        "mediocre",
        validation="lifeless irritating frustrating pointless messy monotonous",
        test="depressing unpleasant stupid lazy awkward pretentious",
    ),
    Lexicon(
        "whole",
        train="film play series documentary comedy musical thriller show",
        validation="drama cartoon mystery production",
        test="movie opera western sitcom",
    ),
    Lexicon(
        "part",
        train="opening ending plot script dialogue music first~half",
        validation="beginning finale story soundtrack",
        test="introduction climax subplot narration",
    ),
)


def _pattern(positive):
    """Returns a pattern: the negative form, then the positive form."""
    exchanged = {
        "good": "{bad}",
        "better": "{worse}",
        "bad": "{good}",
        "worse": "{better}",
        "whole": "{whole}",
        "part": "{part}",
    }
    return ((positive.format(**exchanged),), (positive,))


GRAMMAR = Grammar(
    text_fields=("sentence",),
    patterns={
        split: tuple(_pattern(form) for form in forms)
        for split, forms in _POSITIVE_FORMS.items()
    },
    lexicons=_LEXICONS,
)
