"""The pages' code is real, their links lead somewhere, and the tests that they name exist.

A code block below a line `<!-- FILE [NAME] -->` is what FILE has between the comments `[NAME]` and `[/NAME]`. FILE is
built and run by tests (examples/guide/CMakeLists.txt). A link to a file of the tree, or to a heading, must resolve.
A test is named by `Suite.Name`, in a table's last column that is called `tests`, or by five words or more.

Run: python3 tests/structure/docs_test.py; to copy the code into the pages: python3 tests/structure/docs_test.py --write
"""
import glob
import os
import re
import sys
import unittest

from structure_test import ROOT

GUIDE = "docs/program.md"
GUIDE_CODE = "examples/guide/"
MARK = re.compile(r"^<!-- (\S+) \[([a-z-]+)\] -->$")
FENCE = re.compile(r"^```(\w*)$")
REGION = re.compile(r"^\s*(?://|#) \[(/?)([a-z-]+)\]$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
TEST = re.compile(r"^ *(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.M)
CMAKE_TEST = re.compile(r"add_test\(NAME ([\w.]+)")
SCENARIO = re.compile(r'(?:Row\(|\{)"([a-z_]+)"')  # of tests/sim/named_scenarios.cc
NAMES_TESTS = re.compile(r"^\|.*\| tests \|$")
IN_COLUMN = re.compile(r"`([A-Z]\w*)`")
ANYWHERE = re.compile(r"`([A-Z]\w*(?<!Proto)\.[A-Z]\w*|(?:A(?=[A-Z])|[A-Z][a-z0-9]+){5,})`")


def regions_of(path, text):
    """By name, the lines of each region of a file; and what is wrong with the comments around them."""
    regions, found, name, begin = {}, [], None, 0
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = REGION.match(line)
        if not match:
            continue
        closes, this = match.groups()
        if closes != ("/" if name else "") or (name and this != name):
            found.append(f"{path}:{number}: `{line.strip()}` does not belong here")
        elif name:
            regions[name] = lines[begin:number - 1]
            name = None
        elif this in regions:
            found.append(f"{path}:{number}: a second region [{this}]")
        else:
            name, begin = this, number
    if name:
        found.append(f"{path}:{begin}: [{name}] is not closed")
    return regions, found


def blocks_of(text):
    """(line of the fence from 1, language, (file, name) of the mark above it or None, lines) of each code block."""
    lines = text.split("\n")
    blocks, number = [], 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if not fence:
            number += 1
            continue
        end = lines.index("```", number + 1)
        mark = MARK.match(lines[number - 1]) if number else None
        blocks.append((number + 1, fence.group(1), mark.groups() if mark else None, lines[number + 1:end]))
        number = end + 1
    return blocks


def problems_of_code(pages, sources):
    """What differs between pages and sources (both: path -> text)."""
    found, regions, shown = [], {}, set()
    for path, text in sorted(sources.items()):
        own, wrong = regions_of(path, text)
        found.extend(wrong)
        regions.update({(path, name): lines for name, lines in own.items()})
    for page, text in sorted(pages.items()):
        for number, language, mark, lines in blocks_of(text):
            if mark is None:
                if page == GUIDE and language == "cpp":
                    found.append(f"{page}:{number}: code that no test runs; mark the region of {GUIDE_CODE} that it is")
            elif mark not in regions:
                found.append(f"{page}:{number}: {mark[0]} has no region [{mark[1]}]")
            else:
                shown.add(mark)
                if lines != regions[mark]:
                    found.append(f"{page}:{number}: is not what {mark[0]} has as [{mark[1]}]; "
                                 "run: python3 tests/structure/docs_test.py --write")
    found.extend(f"{path}: [{name}] is in no page" for path, name in regions if (path, name) not in shown)
    return found


def anchors_of(text):
    """What GitHub makes of the headings."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
             for heading in re.findall(r"^#+ (.*)$", text, flags=re.M)]
    return set(slugs)


def problems_of_links(pages, exists):
    """`exists` says whether the tree has such a path."""
    found = []
    anchors = {page: anchors_of(text) for page, text in pages.items()}
    for page, text in sorted(pages.items()):
        for number, line in enumerate(text.split("\n"), 1):
            for link in LINK.findall(line):
                if re.match(r"\w+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if not exists(target):
                    found.append(f"{page}:{number}: there is no {target}")
                elif anchor and target in anchors and anchor not in anchors[target]:
                    found.append(f"{page}:{number}: {target} has no heading #{anchor}")
    return found


def names_of_tests(sources):
    """Suites, tests, and both as `Suite.Name`; also of the simulation's scenarios."""
    names = set()
    for path, text in sources.items():
        for suite, name in TEST.findall(text):
            names.update((suite, name, f"{suite}.{name}"))
        if path.endswith("CMakeLists.txt"):
            names.update(CMAKE_TEST.findall(text))
        if path.endswith("/named_scenarios.cc"):
            names.update("".join(map(str.capitalize, name.split("_"))) for name in SCENARIO.findall(text))
    return names


def named_tests(page):
    """(line from 1, name) of each test that the page names."""
    found, in_table = [], False
    for number, line in enumerate(page.split("\n"), 1):
        in_table = line.startswith("|") and (in_table or bool(NAMES_TESTS.match(line)))
        names = set(ANYWHERE.findall(line))
        if in_table:
            names.update(IN_COLUMN.findall(line.rsplit(" | ", 1)[-1]))
        found.extend((number, name) for name in sorted(names))
    return found


def problems_of_tests(pages, tests):
    return [f"{page}:{number}: there is no test {name}" for page, text in sorted(pages.items())
            for number, name in named_tests(text) if name not in tests]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def tree(*patterns):
    found = [path for pattern in patterns for path in glob.glob(pattern, root_dir=ROOT, recursive=True)]
    return {path: read(path) for path in found if os.path.isfile(os.path.join(ROOT, path))}


def all_pages():
    return tree("README.md", "docs/*.md")


def all_sources():
    return tree("examples/**/*.cc", "examples/**/*.h", "examples/**/*.yaml")


def all_tests():
    return tree("tests/**/*.cc", "tests/**/*.h", "examples/**/*.cc", "tests/**/CMakeLists.txt",
                "examples/**/CMakeLists.txt")


def write():
    """Copies the regions into the pages."""
    regions = {(path, name): lines for path, text in all_sources().items()
               for name, lines in regions_of(path, text)[0].items()}
    for page, text in all_pages().items():
        lines = text.split("\n")
        for number, _, mark, old in reversed(blocks_of(text)):
            if mark in regions:
                lines[number:number + len(old)] = regions[mark]
        if lines != text.split("\n"):
            with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
                file.write("\n".join(lines))


class DocsTest(unittest.TestCase):
    def test_code_is_that_of_the_examples(self):
        self.assertGreater(sum(mark is not None for _, _, mark, _ in blocks_of(read(GUIDE))), 10)
        self.assertEqual([], problems_of_code(all_pages(), all_sources()))

    def test_links_resolve(self):
        pages = all_pages()
        self.assertGreater(sum(len(LINK.findall(text)) for text in pages.values()), 50)
        self.assertEqual([], problems_of_links(pages, lambda path: os.path.exists(os.path.join(ROOT, path))))


    def test_tests_exist(self):
        pages = all_pages()
        self.assertGreater(sum(len(named_tests(text)) for text in pages.values()), 100)
        self.assertEqual([], problems_of_tests(pages, names_of_tests(all_tests())))


class RulesTest(unittest.TestCase):
    """The rules find what they are for."""
    PAGE = "a\n<!-- examples/guide/a.cc [x] -->\n```cpp\nint x;\n```\nb\n"
    SOURCE = "// [x]\nint x;\n// [/x]\n"

    def assert_code(self, page, source, *words):
        found = problems_of_code({GUIDE: page}, {"examples/guide/a.cc": source})
        self.assertEqual(len(words), len(found), found)
        for word, problem in zip(words, found):
            self.assertIn(word, problem)

    def test_code(self):
        self.assert_code(self.PAGE, self.SOURCE)
        self.assert_code(self.PAGE, self.SOURCE.replace("int", "long"), "is not what")
        self.assert_code(self.PAGE, self.SOURCE.replace("[x]", "[y]").replace("[/x]", "[/y]"), "no region", "in no page")
        self.assert_code(self.PAGE, "// [x]\nint x;\n", "not closed", "no region")
        self.assert_code(self.PAGE, self.SOURCE + self.SOURCE, "a second region", "does not belong")
        self.assert_code(self.PAGE, self.SOURCE + "// [/y]\n", "does not belong")
        self.assert_code("```cpp\nint y;\n```\n" + self.PAGE, self.SOURCE, "no test runs")
        self.assert_code("```sh\nls\n```\n" + self.PAGE, self.SOURCE)

    def test_links(self):
        pages = {"docs/a.md": "# A `b`: c\n[x](b.md) [y](#a-b-c) [z](../README.md#top) [w](https://a.b/c)\n",
                 "docs/b.md": "", "README.md": "# Top\n"}
        self.assertEqual([], problems_of_links(pages, pages.__contains__))
        pages["docs/b.md"] = "[x](c.md)\n[y](a.md#nothing)\n```\n# No heading\n```\n[z](#no-heading)\n"
        found = problems_of_links(pages, pages.__contains__)
        self.assertEqual(3, len(found), found)
        self.assertIn("docs/b.md:1: there is no docs/c.md", found[0])
        self.assertIn("docs/b.md:2: docs/a.md has no heading", found[1])

    def test_names_of_tests(self):
        tests = names_of_tests({
            "tests/a_test.cc": "TEST(Suite, Name) {}\nTEST_P(Others,\n       ThatHasParameters) {}\n",
            "tests/sim/named_scenarios.cc": 'return {{"all", {}},\n Row("ps_hangs", {}),\n',
            "examples/CMakeLists.txt": "add_test(NAME Guide.Trains\n"})
        page = ("| what | tests |\n|---|---|\n| `Other` | `Name`, `Others` (in rounds), `PsHangs` (simulated) |\n"
                "\n`Suite.Name`, `Guide.Trains`, `DatasetProto.Kind`, `AClass`\n")
        self.assertEqual([], problems_of_tests({"a.md": page}, tests))
        wrong = ("| what | tests |\n|---|---|\n| `Name` | `PsHang` |\n\n| what | why |\n|---|---|\n| a | `Other` |\n"
                 "`Suite.Other` and `ATestThatIsGone`\n")
        found = problems_of_tests({"a.md": wrong}, tests)
        self.assertEqual(3, len(found), found)
        for problem, word in zip(found, ("a.md:3: there is no test PsHang", "ATestThatIsGone", "Suite.Other")):
            self.assertIn(word, problem)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        unittest.main()
