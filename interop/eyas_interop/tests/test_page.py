"""Tests of reading docs/guide/with-other-servers.md."""

import pathlib
import re
import unittest

from ..cases import servers_before, servers_behind, servers_passing
from ..page import CONFIGURATIONS, PAGE, Page


class PageTest(unittest.TestCase):
    def test_everything_on_the_page_is_run(self) -> None:
        page = PAGE.read_text()
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        configurations = {file.read_text().splitlines()[0] for file in CONFIGURATIONS.iterdir()}
        commands = {line for kind, text in blocks if kind == "sh" for line in text.splitlines() if line.startswith("#")}
        titles = [*servers_behind.TITLES.values(), *servers_before.TITLES.values(), *servers_passing.TITLES.values()]
        self.assertEqual(configurations, {f"# {title}" for title in titles})
        for file in CONFIGURATIONS.iterdir():
            self.assertIn(f"(../../dist/servers/{file.name})", page)
        titles = [
            *servers_behind.WAYS.values(), *servers_before.FILES.values(), servers_before.GATEWAYS,
            servers_passing.EYAS, servers_passing.EYAS_WITH_SOCKETS,
        ]
        self.assertEqual(commands, {f"# {title}" for title in titles})

    def test_directories_are_replaced_and_comments_are_not(self) -> None:
        page = Page({"/etc/eyas": pathlib.Path("/tmp/etc"), "/srv/www": pathlib.Path("/tmp/www")})
        [arguments] = page.commands("eyas behind, TLS passed on")
        self.assertEqual((arguments[0], arguments[-1]), ("serve", "/tmp/www"))
        self.assertEqual(arguments[arguments.index("--key") + 1], "/tmp/etc/key.pem")
        self.assertEqual(arguments[arguments.index("-l") + 1], "[::]:8443")
        text = page.configuration("/etc/haproxy/haproxy.cfg, before eyas")
        self.assertIn("ssl crt /tmp/etc/site.pem ", text)
        self.assertTrue(text.startswith("# /etc/haproxy/haproxy.cfg, before eyas\n"))
