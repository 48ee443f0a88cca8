"""Lists the crates in the program: their licences, and a parts list (SBOM). deploy/release writes both into an archive."""
import functools
import json
import re
import subprocess
import sys
import tomllib
import uuid
from datetime import datetime, timezone
from pathlib import Path

# Also below the top: some crates bring sources of others. BoringSSL's fuzzing data and the like are no licences.
LICENCE_FILE = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-._].*)?$", re.IGNORECASE)
NO_LICENCE = {".rs", ".py", ".go", ".c", ".h", ".toml", ".json"}
# Of a choice of licences, the first of these is taken for a crate that brings no text.
PREFERRED = ["MIT", "ISC", "Apache-2.0", "MPL-2.0"]
# Debian's package base-files has these.
COMMON_LICENCES = Path("/usr/share/common-licenses")
MIT = """Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute,
sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following
conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS
IN THE SOFTWARE."""
ISC = """Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN
CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE."""


def listed(target, epoch):
    """Returns the text of the notices and the parts list as CycloneDX JSON, for the crates that are linked into the program."""
    metadata = json.loads(cargo("metadata", "--format-version", "1", "--filter-platform", target))
    # `metadata` also follows what only tests need; `tree` says what the program consists of.
    tree = cargo("tree", "--edges", "normal", "--target", target, "--prefix", "none", "--format", "{p}")
    linked = {tuple(line.split()[:2]) for line in tree.splitlines() if line}
    packages = {package["id"]: package for package in metadata["packages"] if (package["name"], f"v{package['version']}") in linked}
    if len(packages) != len(linked):
        sys.exit(f"cargo tree names {len(linked)} crates, cargo metadata {len(packages)} of them")
    # The crates of the workspace are one part.
    own = [packages.pop(package["id"]) for package in list(packages.values()) if package["source"] is None]
    ours = next(package for package in own if package["name"] == "tertulia")
    others = sorted(packages.values(), key=reference)
    edges = {node["id"]: [dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
             for node in metadata["resolve"]["nodes"]}
    edges[ours["id"]] = [crate for package in own for crate in edges[package["id"]]]
    return notices(others), parts_list(ours, others, packages, edges, epoch)


def notices(crates):
    """The licences of all crates. A text that several have stands once."""
    texts, lines = {}, []
    for crate in crates:
        found = licence_texts(crate)
        for text in found:
            texts.setdefault(text, []).append(f"{crate['name']} {crate['version']}")
        lines.append(f"{crate['name']} {crate['version']}: {expression(crate)}{source(crate)}")
    head = ("The program contains these crates. Each is followed by its licence, as an SPDX expression, and by the place of its source, unchanged.\n"
            "It also contains the standard library of Rust (MIT OR Apache-2.0). The texts of the licences follow the list.\n\n")
    sections = [f"{'=' * 120}\n{', '.join(names)}\n{'=' * 120}\n\n{text}\n" for text, names in texts.items()]
    return head + "\n".join(lines) + "\n\n" + "\n".join(sections)


def licence_texts(crate):
    return texts_in(Path(crate["manifest_path"]).parent, crate["license_file"]) or [standard_text(crate)]


@functools.cache
def texts_in(folder, named):
    """The texts of licences that a crate brings, each once."""
    files = [path for path in sorted(folder.rglob("*")) if LICENCE_FILE.match(path.name) and path.suffix not in NO_LICENCE and path.is_file()]
    files += [folder / named] if named else []
    texts = [path.read_text(errors="replace").strip() for path in files]
    # A link that was packed as a text holds only a path.
    return [text for text in dict.fromkeys(texts) if len(text) > 60]


def standard_text(crate):
    """The text of the licence that a crate names, but does not bring."""
    name = next((name for name in PREFERRED if name in re.split(r"[ ()]+", expression(crate))), None)
    if name in ("MIT", "ISC"):
        return f"Copyright (c) {', '.join(crate['authors']) or 'the authors of ' + crate['name']}\n\n{MIT if name == 'MIT' else ISC}"
    if not name or not (COMMON_LICENCES / name).exists():
        sys.exit(f"{crate['name']} brings no text of its licence, {expression(crate)}, and {COMMON_LICENCES} has none")
    return (COMMON_LICENCES / name).read_text().strip()


def parts_list(ours, others, packages, edges, epoch):
    with open("Cargo.lock", "rb") as lock:
        checksums = {(package["name"], package["version"]): package.get("checksum") for package in tomllib.load(lock)["package"]}
    components = [{
        "type": "library",
        "bom-ref": reference(crate),
        "name": crate["name"],
        "version": crate["version"],
        "hashes": [{"alg": "SHA-256", "content": checksums[crate["name"], crate["version"]]}],
        "licenses": [{"expression": expression(crate)}],
        "purl": reference(crate),
        **({"externalReferences": [{"type": "vcs", "url": crate["repository"]}]} if crate["repository"] else {}),
    } for crate in others]
    dependencies = [{
        "ref": reference(crate),
        "dependsOn": sorted({reference(packages[other]) for other in edges[crate["id"]] if other in packages}),
    } for crate in [ours, *others]]
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "bom-ref": reference(ours), "name": ours["name"], "version": ours["version"]},
        },
        "components": components,
        "dependencies": dependencies,
    }
    # The same parts have the same number.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(document, sort_keys=True))
    return json.dumps({**document, "serialNumber": f"urn:uuid:{number}"}, indent=1) + "\n"


def expression(crate):
    """The licence as an SPDX expression. Old manifests write a choice with a slash."""
    return re.sub(r" ?/ ?", " OR ", crate["license"] or "NOASSERTION")


def source(crate):
    return f"; {crate['repository']}" if crate["repository"] else ""


def reference(crate):
    return f"pkg:cargo/{crate['name']}@{crate['version']}"


def cargo(*arguments):
    return subprocess.run(["cargo", arguments[0], "--locked", *arguments[1:]], check=True, stdout=subprocess.PIPE, text=True).stdout
