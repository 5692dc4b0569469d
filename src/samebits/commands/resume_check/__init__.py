"""Runs a script whole, and killed and resumed; says whether it goes on as if never killed."""

from samebits.commands.resume_check._check import ResumeRequest as ResumeRequest
from samebits.commands.resume_check._check import resume_check as resume_check
from samebits.commands.resume_check.runs import ResumeCheck as ResumeCheck
