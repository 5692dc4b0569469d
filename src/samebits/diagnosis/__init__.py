"""From a finding to what to do about it: remedies, and patches of the user's own source."""
