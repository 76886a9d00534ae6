"""The list of pairs: every name in its commands is defined, and the matching of outputs."""

import re
import unittest

from ..cases.sctp_pair_runs import check_outputs, matches_all, shell
from ..cases.sctp_pairs import LANGUAGES, SIGNALLING, TOOLS, Pair, fill
from ..cases.sctp_programs import ADDRESSES

COMMON = ("python", "classes", "chain", "key", "authority", "wait_for", "log")


class Pairs(unittest.TestCase):
    def test_every_name_in_a_command_is_defined(self) -> None:
        for pair in (*TOOLS, *LANGUAGES, *SIGNALLING):
            known = {name: name for name in (*ADDRESSES, *COMMON, *(name for name, _ in pair.files))}
            for words in (pair.listen_command, pair.connect_command):
                self.assertEqual(re.findall(r"\{\w+\}", fill(words, known)), [], pair.name)

    def test_other_braces_stay(self) -> None:
        self.assertEqual(fill("{ok, A} = f({server})", {"server": "there"}), "{ok, A} = f(there)")

    def test_a_single_command_replaces_the_shell(self) -> None:
        self.assertEqual(shell("socat -u 'a b'"), ["socat", "-u", "a b"])
        self.assertEqual(shell("x $(cat y)"), ["sh", "-c", "exec x $(cat y)"])
        self.assertEqual(shell("x | y"), ["sh", "-c", "x | y"])

    def test_expected_words_are_counted(self) -> None:
        self.assertTrue(matches_all(("2 x ping", "end"), "ping ping end"))
        self.assertFalse(matches_all(("2 x ping",), "ping ping ping"))
        self.assertFalse(matches_all(("2 x ping", "end"), "ping ping"))
        self.assertTrue(matches_all((r"~Bytes: +[1-9]",), "Bytes:   12"))
        self.assertFalse(matches_all((r"~Bytes: +[1-9]",), "Bytes:   0"))

    def test_common_matches_may_come_in_any_order(self) -> None:
        pair = Pair("", "", "", "", "", same=r"id=(\d+)")
        self.assertTrue(check_outputs(pair, 0, "id=1 id=2", "id=2 id=1")[0])
        self.assertTrue(check_outputs(pair, 0, "id=1 id=2", "id=2")[0])
        self.assertFalse(check_outputs(pair, 0, "id=1 id=2", "id=3 id=2")[0])
        self.assertFalse(check_outputs(pair, 0, "id=1 id=2 id=3", "id=1")[0])
        self.assertFalse(check_outputs(pair, 0, "", "")[0])
