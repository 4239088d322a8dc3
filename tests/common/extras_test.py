"""Tests the error for a missing optional package."""

import pytest

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.extras import needs_extra


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'ray.util'", name="ray.util"),
        # As code that imports lazily may raise it.
        ModuleNotFoundError("ray"),
    ],
)
def test_the_package_and_the_extra_are_named(error):
    message = r"Ray needs the package `ray`: pip install 'tf_adapters\[ray\]'"
    with pytest.raises(ConfigError, match=message), needs_extra("ray", "Ray"):
        raise error
