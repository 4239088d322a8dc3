"""Tests that oneDNN is enabled, or a warning says why it is not."""

import os
import subprocess
import sys

import pytest

from tf_adapters.common import onednn

IMPORTED = "import tf_adapters, os; print(os.environ['TF_ENABLE_ONEDNN_OPTS'])"


@pytest.mark.parametrize(("given", "then"), [(None, "1"), ("0", "0")])
def test_an_import_sets_it_unless_somebody_has(given, then):
    environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": given or ""}
    if given is None:
        del environment["TF_ENABLE_ONEDNN_OPTS"]
    output = subprocess.check_output(
        [sys.executable, "-c", IMPORTED], env=environment, text=True
    )
    assert output.split() == [then]


@pytest.mark.parametrize(
    ("flags", "said"), [("sse avx2", True), ("avx2 avx512_vnni", False)]
)
def test_too_late_is_said_where_it_matters(
    monkeypatch, tmp_path, caplog, flags, said
):
    (tmp_path / "cpuinfo").write_text(f"flags : {flags}")
    monkeypatch.setattr(onednn, "_CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setitem(sys.modules, "tensorflow", object())
    monkeypatch.delenv("TF_ENABLE_ONEDNN_OPTS")
    onednn.switch_on()
    assert ("Import tf_adapters first" in caplog.text) == said
    assert "TF_ENABLE_ONEDNN_OPTS" not in os.environ
