"""What an unknown name is answered with."""

from tf_adapters.common.suggestions import did_you_mean


def test_the_nearest_known_name_is_suggested():
    known = {"houlsby": 1, "pfeiffer": 2}
    assert did_you_mean("houlsbi", known) == " Did you mean `houlsby`?"
    assert did_you_mean(3, known) == did_you_mean("x", known) == ""
