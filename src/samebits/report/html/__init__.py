"""The report as one HTML page that needs no network: what it shows as frozen values, and its rendering."""
