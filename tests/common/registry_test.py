"""Tests registries of classes, including classes that are defined again."""

import pytest

from tf_adapters.common.errors import UserError
from tf_adapters.common.registry import Registry


class _Base:
    pass


def _defined():
    """Returns a new class of the same name, like a notebook cell run twice."""

    class Mine(_Base):
        pass

    return Mine


@pytest.fixture
def registry():
    return Registry("thing", "@register")


def test_instances_of_a_class_that_was_defined_again_keep_its_name(registry):
    older, newer = _defined(), _defined()
    registry.add("mine", older, _Base)
    registry.add("mine", newer, _Base)
    assert registry["mine"] is newer
    assert registry.name_of(older()) == registry.name_of(newer()) == "mine"


def test_another_class_does_not_take_a_name(registry):
    registry.add("mine", _defined(), _Base)
    with pytest.raises(UserError, match="a thing `mine` already, Mine. Give"):
        registry.add("mine", type("Other", (_Base,), {}), _Base)
    with pytest.raises(UserError, match="Other has no name"):
        registry.name_of(type("Other", (_Base,), {})())


def test_a_subclass_has_no_name_of_its_own(registry):
    mine = _defined()
    registry.add("mine", mine, _Base)
    with pytest.raises(UserError, match="Put `@register"):
        registry.name_of(type("Mine", (mine,), {})())
