"""Facts of the machine, the packages and the settings of a run. Reading them changes nothing."""
