"""An error names each candidate with its cause."""

import eyas

try:
    eyas.get("https://localhost:9/", timeout=1)
except eyas.ConnectError as error:
    for candidate, cause in error.candidates:
        print(candidate, cause)
