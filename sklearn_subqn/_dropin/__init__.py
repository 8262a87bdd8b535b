"""Drop-in estimators with the names and parameters of other packages."""
