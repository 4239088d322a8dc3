"""Tests that every setting is described, on its page and in `--help`."""

from pathlib import Path
import re

from tf_adapters.cli import flags
from tf_adapters.config import describe

PAGE = Path(__file__).parents[2] / "docs/settings.md"


def test_the_page_is_as_it_would_be_made():
    made = describe.settings_page()
    assert PAGE.read_text(encoding="utf-8").strip() == made.strip(), (
        "python -m tf_adapters.config.describe > docs/settings.md"
    )


def test_help_says_what_a_short_flag_means():
    for name, (key, _) in flags._SHORT.items():
        text = flags.flags.FLAGS[name].help
        # absl puts the values of a flag first, `<tensorflow|jax>: `.
        text = re.sub(r"^<[^>]*>: ", "", text)
        assert text.startswith(describe.meaning(key)) and key in text
        assert len(describe.meaning(key)) > 15
