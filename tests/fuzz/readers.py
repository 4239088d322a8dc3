"""All readers, by name."""

from tests.fuzz import adapter_readers
from tests.fuzz import encoder_readers
from tests.fuzz import row_readers
from tests.fuzz import run_readers
from tests.fuzz import settings_readers

READERS = {
    **row_readers.READERS,
    **settings_readers.READERS,
    **run_readers.READERS,
    **adapter_readers.READERS,
    **encoder_readers.READERS,
}
