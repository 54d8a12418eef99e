"""Numbers and verdicts from records: response times, percentiles, the judge, the summary. No clock, no live wing."""
