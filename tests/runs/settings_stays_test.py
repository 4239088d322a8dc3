"""A run's settings are resolved once, and functions get what they use."""

from pathlib import Path
import runpy

from tests.fixtures import huggingface_folders

ROOT = Path(__file__).parents[2]


def test_settings_pass_through_few_files(tmp_path):
    script = runpy.run_path(str(ROOT / "benchmarks" / "count_stays.py"))
    found = script["follow_settings"](
        ROOT / "tf_adapters", tmp_path, str(huggingface_folders.ONE_BLOCK)
    )
    stays, returns, files = script["numbers"](found)
    # Far fewer would mean that the count misses most of them.
    assert 20 < stays < 60
    assert returns < 42
    assert 10 < files <= stays
