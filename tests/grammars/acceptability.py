"""The grammar of `acceptability`: is a sentence grammatical?

Each wrong sentence is a right one with a single fault. A verb does not agree
with its subject across the words between them, a determiner with its noun, or
a reflexive with its antecedent; a verb has the wrong form after an auxiliary;
or the words of a question, or around a particle or an adjective, are in the
wrong order. Singular and plural, base form and participle are wrong as often
as right, so that no single word gives a sentence away.
"""

from tests.grammars.grammar import Grammar
from tests.grammars.grammar import Lexicon

# Each line: the right sentence, the wrong one.
_PAIRS = {
    "train": (
        # Subject and verb.
        (
            "The {boy} near the {girls} is {tall}.",
            "The {boy} near the {girls} are {tall}.",
        ),
        (
            "The {boys} near the {girl} are {tall}.",
            "The {boys} near the {girl} is {tall}.",
        ),
        (
            "The {boy} behind the {girl} often {waits}.",
            "The {boy} behind the {girl} often {wait}.",
        ),
        (
            "The {boys} behind the {girls} often {wait}.",
            "The {boys} behind the {girls} often {waits}.",
        ),
        # Determiner and noun.
        ("This {boy} {waited}.", "This {boys} {waited}."),
        ("Those {boys} {waited}.", "Those {boy} {waited}."),
        ("Every {boy} {waited}.", "Every {boys} {waited}."),
        ("Many {boys} {waited}.", "Many {boy} {waited}."),
        # Reflexives.
        (
            "The {king} near the {girls} saw himself.",
            "The {king} near the {girls} saw themselves.",
        ),
        (
            "The {kings} near the {girl} saw themselves.",
            "The {kings} near the {girl} saw himself.",
        ),
        # Auxiliary and verb.
        ("The {boy} has {taken} it.", "The {boy} has {take} it."),
        ("The {boys} have {taken} it.", "The {boys} have {take} it."),
        ("The {boy} did not {take} it.", "The {boy} did not {taken} it."),
        ("The {boys} will {take} it.", "The {boys} will {taken} it."),
        # Order: particle, adjective, embedded and direct question.
        ("The {boy} {turned} it {off}.", "The {boy} {turned} {off} it."),
        ("The {tall} {boys} {waited}.", "The {boys} {tall} {waited}."),
        (
            "Nobody knows when the {boy} will {wait}.",
            "Nobody knows when will the {boy} {wait}.",
        ),
        ("When will the {boys} {wait}?", "When the {boys} will {wait}?"),
    ),
    "validation": (
        (
            "The {boy} who knows the {girls} is {tall}.",
            "The {boy} who knows the {girls} are {tall}.",
        ),
        ("I saw two {tall} {boys} there.", "I saw two {tall} {boy} there."),
        (
            "The {kings} whom the {girl} knows blamed themselves.",
            "The {kings} whom the {girl} knows blamed himself.",
        ),
        ("The {boy} must {take} it.", "The {boy} must {taken} it."),
        (
            "The {girl} {turned} them {off} again.",
            "The {girl} {turned} {off} them again.",
        ),
        (
            "They wonder why the {boys} were {tall}.",
            "They wonder why were the {boys} {tall}.",
        ),
    ),
    "test": (
        (
            "The {boys} that the {girl} likes are {tall}.",
            "The {boys} that the {girl} likes is {tall}.",
        ),
        ("Each {tall} {boy} got a letter.", "Each {tall} {boys} got a letter."),
        (
            "Perhaps the {king} the {girls} met trusts himself.",
            "Perhaps the {king} the {girls} met trusts themselves.",
        ),
        ("The {boy} had {taken} it.", "The {boy} had {take} it."),
        (
            "The {girls} never {turned} them {off}.",
            "The {girls} never {turned} {off} them.",
        ),
        (
            "Can you say where the {boys} may {wait}?",
            "Can you say where may the {boys} {wait}?",
        ),
    ),
}


_LEXICONS = (
    Lexicon(
        "boy/boys girl/girls",
        train="doctor/doctors lawyer/lawyers nurse/nurses teacher/teachers "
        "farmer/farmers student/students waiter/waiters soldier/soldiers "
        "singer/singers painter/painters pilot/pilots baker/bakers",
        validation="actor/actors driver/drivers dentist/dentists poet/poets "
        "gardener/gardeners plumber/plumbers",
        test="senator/senators engineer/engineers librarian/librarians "
        "chef/chefs coach/coaches banker/bankers",
    ),
    Lexicon(
        "king/kings",
        train="king/kings uncle/uncles monk/monks father/fathers "
        "brother/brothers grandson/grandsons",
        validation="prince/princes nephew/nephews boy/boys "
        "grandfather/grandfathers husband/husbands",
        test="son/sons duke/dukes gentleman/gentlemen stepfather/stepfathers "
        "lord/lords",
    ),
    Lexicon(
        "tall",
        train="tall young happy famous tired angry clever rich",
        validation="nervous strong friendly quiet",
        test="polite brave lonely proud",
    ),
    Lexicon(
        "wait/waits/waited",
        train="wait/waits/waited smile/smiles/smiled work/works/worked "
        "laugh/laughs/laughed dance/dances/danced talk/talks/talked "
        "travel/travels/traveled cook/cooks/cooked",
        validation="sleep/sleeps/slept sing/sings/sang cry/cries/cried "
        "stay/stays/stayed",
        test="run/runs/ran swim/swims/swam pray/prays/prayed rest/rests/rested",
    ),
    Lexicon(
        "take/taken",
        train="take/taken write/written see/seen break/broken hide/hidden "
        "throw/thrown choose/chosen know/known",
        validation="draw/drawn forget/forgotten wear/worn eat/eaten",
        test="steal/stolen shake/shaken bite/bitten speak/spoken",
    ),
    Lexicon(
        "turned/off",
        train="turned/off picked/up gave/back threw/away wrote/down "
        "switched/on handed/in pushed/aside",
        validation="put/down locked/up carried/away sent/back pulled/out "
        "filled/in",
        test="brought/back cut/up swept/aside read/out tore/down folded/up",
    ),
)


GRAMMAR = Grammar(
    text_fields=("sentence",),
    patterns={
        split: tuple(((wrong,), (right,)) for right, wrong in pairs)
        for split, pairs in _PAIRS.items()
    },
    lexicons=_LEXICONS,
)
