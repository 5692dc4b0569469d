"""Does a script that is killed and resumed give the same bits as one that was not? Says what is not restored."""

from samebits.resuming.check import resume_check as resume_check
from samebits.resuming.request import ResumeRequest as ResumeRequest
from samebits.resuming.results import ResumeCheck as ResumeCheck
