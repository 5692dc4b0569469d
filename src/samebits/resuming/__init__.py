"""Runs a script whole, and killed and resumed; says whether it goes on as if never killed."""

from samebits.resuming.check import resume_check as resume_check
from samebits.resuming.request import ResumeRequest as ResumeRequest
from samebits.resuming.results import ResumeCheck as ResumeCheck
