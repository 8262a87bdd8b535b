"""Rules of transitions: which labelings schemes of chunks allow, by enumeration."""

import itertools
import re

import numpy as np
import pytest

from sklearn_subqn import LinearChainCRF
from sklearn_subqn._chains.transitions import TransitionRules

# Chunks of one type, {0} for it, as regular expressions. In IOB1 they are runs of
# chunks, whose later ones begin with B.
CHUNKS = {
    "BIO": "B{0}(I{0})*",
    "IOB2": "B{0}(I{0})*",
    "IOB1": "I{0}(I{0}|B{0})*",
    "BIOES": "S{0}|B{0}(I{0})*E{0}",
    "BILOU": "U{0}|B{0}(I{0})*L{0}",
}


@pytest.mark.parametrize("scheme", CHUNKS)
@pytest.mark.parametrize("types", ["", "x", "xy"])
def test_schemes_allow_what_is_made_of_chunks(scheme, types):
    prefixes = sorted(set(CHUNKS[scheme]) & set("BIESLU"))
    labels = ["O", *prefixes]
    if types:
        labels = ["O", *(f"{p}-{kind}" for p in prefixes for kind in types)]
    rules = TransitionRules.of(scheme, np.array(labels))
    chunks = "|".join(CHUNKS[scheme].format(kind) for kind in types or "-")
    n_made = 0
    for length in (1, 2, 3):
        for codes in itertools.product(range(len(labels)), repeat=length):
            text = "".join((labels[c] + "--")[::2][:2] for c in codes)
            text = text.replace("O-", "O")
            made = re.fullmatch(f"(O|{chunks})*", text) is not None
            allowed = bool(
                rules.ends[0, codes[0]]
                and rules.ends[1, codes[-1]]
                and all(rules.allowed[pair] for pair in itertools.pairwise(codes))
            )
            assert allowed == made, [labels[c] for c in codes]
            n_made += made
    assert n_made > 3


@pytest.mark.parametrize(
    ("scheme", "labels"),
    [
        ("BIO", ["B", "I", "O"]),
        ("IOB1", ["I-X", "B-X", "O"]),
        ("IOB2", ["B-X", "I-X", "O"]),
        ("BIOES", ["B", "E", "S"]),
        ("BILOU", ["B-X", "L-X", "U-Y"]),
    ],
)
def test_models_of_schemes(scheme, labels):
    X = [[{"w": "a"}, {"w": "b"}, {"w": "c"}]] * 2
    crf = LinearChainCRF(1e-2, transition_constraints=scheme).fit(X, [labels] * 2)
    assert crf.predict(X) == [labels] * 2
    with pytest.raises(ValueError, match=f"Sequence 0 .*{scheme}' forbids"):
        crf.fit([X[0][::-1]], [labels[::-1]])


def test_a_scheme_names_its_labels():
    X = [[{"w": "a"}, {"w": "b"}]]
    message = "needs labels 'O', 'B-...', 'I-...', 'L-...', 'U-...', or 'B', 'I', 'L'"
    with pytest.raises(ValueError, match=f"{message}, 'U' without types; got 'E-X'"):
        LinearChainCRF(transition_constraints="BILOU").fit(X, [["B-X", "E-X"]])


def test_forbidden_pairs_must_be_of_labels_that_there_are():
    """A misspelt rule would otherwise forbid nothing."""
    X, y = [[{"w": "a"}, {"w": "b"}, {"w": "c"}]], [["B-X", "I-X", "O"]]
    crf = LinearChainCRF(transition_constraints=[("O", "I-x")])
    message = r"'I-x' is not among the labels \['B-X', 'I-X', 'O'\]"
    with pytest.raises(ValueError, match=message):
        crf.fit(X, y)
    with pytest.raises(ValueError, match="forbids \\('0', 'I-X'\\), but '0'"):
        crf.set_params(transition_constraints=[("0", "I-X")]).fit(X, y)
    with pytest.raises(ValueError, match="1 is not among the labels"):
        crf.set_params(transition_constraints=[("O", 1)]).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn_subqn.exceptions.ConstantModelWarning")
@pytest.mark.parametrize("loss", ["log_loss", "hinge"])
def test_the_only_labeling_that_rules_allow_costs_nothing(loss):
    """Of sequences with fewer weights than tokens, and one without weight."""
    X, y = [[{"a": 1.0}, {"b": 1.0}]] * 3, [["B-X", "E-X"]] * 3
    model = LinearChainCRF(loss=loss, transition_constraints="BIOES")
    model.fit(X, y, sample_weight=[1.0, 2.0, 0.0])
    assert model.objective_ == model.dual_gap_ == 0.0
    assert not any(model.state_features_.values())
