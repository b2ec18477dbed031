"""A process that finds this file is one of a plain installation: xarray and pandas would load these at every start."""

import sys

sys.modules.update({"dask": None, "pyarrow": None})  # importing them fails
