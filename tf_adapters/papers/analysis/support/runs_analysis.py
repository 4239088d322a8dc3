"""What analyses of one run after the other have in common."""

import pandas as pd

from tf_adapters.papers.analysis.support import trained_run
from tf_adapters.papers.analysis.support.analysis import Analysis


class RunsAnalysis(Analysis):
    """An analysis whose table has some rows of each of several runs."""

    reads = "model_dirs"
    # Of the table; the first one has the run's folder.
    columns = ("run",)

    def table(self, options):
        rows = []
        for folder in options.folders:
            run = trained_run.load_run(folder)
            rows += [(str(folder), *row) for row in self.rows(run, options)]
        return pd.DataFrame(rows, columns=self.columns)

    def rows(self, run, options):
        """Returns the rows of a `TrainedRun`, but for their first column."""
        raise NotImplementedError
