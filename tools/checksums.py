"""The checksums of the shipped records, which have none of their own: results/meta/checksums.json.

python tools/checksums.py            writes it anew, after a record was added
python tools/checksums.py --check    compares, and exits with 1 where a file differs
"""

import hashlib
import json
import sys
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


def main() -> int:
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(RESULTS.glob("*.json"))}
    kept = RESULTS / "meta" / "checksums.json"
    if "--check" not in sys.argv[1:]:
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    known = json.loads(kept.read_text())
    other = sorted(name for name in found.keys() | known.keys() if found.get(name) != known.get(name))
    print("\n".join(other) or f"{len(found)} records are as they were shipped.")
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main())
