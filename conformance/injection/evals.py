"""Writes the cases of inspect-evals that the tests use, as JSON, from the package's wheel: nothing of the package is run or imported."""

import json
import sys
import zipfile

CODING = "inspect_evals/ipi_coding_agent/dataset/samples.json"
THREATS = "inspect_evals/agent_threat_bench/data/"


def main():
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        names = sorted(n for n in wheel.namelist() if n.startswith(THREATS) and n.endswith(".json"))
        threats = {n[len(THREATS):-len(".json")]: json.loads(wheel.read(n)) for n in names}
        coding = json.loads(wheel.read(CODING))
    package = sys.argv[1].rsplit("/", 1)[-1].split("-py3", 1)[0]
    json.dump({"package": package, "coding": coding, "threats": threats}, sys.stdout)


main()
