"""MediaWiki on SQLite: 400 articles of three revisions, talk pages, categories, redirects.

An article is found by a page with its current text: `/index.php/Title` or `?title=Title`. An old
version, a difference, a form, a history or a special page does not count.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import sqlite3
from random import Random
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from bench.measure import free_port
from bench.serving import ADDRESS
from bench.yields import texts
from bench.yields.application import Application, file, serve
from bench.yields.judging import Truth, query_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bench.serving import Place

ARTICLES, TALKS, CATEGORIES, REDIRECTS, REVISIONS = 400, 60, 24, 30, 3
NAMESPACES = {0: "", 1: "Talk:", 14: "Category:"}
PHP = ("fpm", "cli", "sqlite3", "mbstring", "intl", "xml", "gd", "apcu")
PHP_EXTENSIONS = (
    "pdo xml apcu calendar ctype dom exif fileinfo gd iconv intl mbstring pdo_sqlite phar posix "
    "simplexml sqlite3 tokenizer xmlreader xmlwriter"
)
PHP_WORKERS = 3  # a small private server has as many
EXTENSIONS = ("Cite", "CategoryTree", "ParserFunctions", "CiteThisPage", "InputBox")
# With any of these parameters, a page does not show the named article's current text.
OTHER_VIEWS = {"oldid", "diff", "curid", "redirect", "search", "veaction", "from", "undo"}
VIEWS = {"view", "purge", "render"}
SETTINGS = """
$wgServer = "http://" . ( $_SERVER['HTTP_HOST'] ?? '127.0.0.1' );
$wgScriptPath = ""; $wgArticlePath = "/index.php/$1"; $wgUsePathInfo = true;
$wgResourceBasePath = ""; $wgStylePath = "/skins"; $wgExtensionAssetsPath = "/extensions";
$wgJobRunRate = 0; $wgShowExceptionDetails = true;
$wgMainCacheType = CACHE_ACCEL; $wgParserCacheType = CACHE_DB; $wgCacheDirectory = "{folder}/cache";
$wgLocalisationCacheConf['storeDirectory'] = "{folder}/cache";
$wgEnableUploads = false; $wgUseImageMagick = false; $wgPingback = false;
"""


def prepare(place: Place) -> Truth:
    """Install the wiki, import its pages, and read their titles from its database."""
    php = _php(place)
    code = file("usr/share/mediawiki")
    for name in ("data", "cache"):
        place.path(name).mkdir()
    place.hand_over()
    place.run(
        [
            *php, code / "maintenance" / "install.php", "--dbtype=sqlite", "--dbname=wiki",
            f"--dbpath={place.path('data')}", f"--confpath={place.folder}", "--scriptpath=",
            "--server=http://127.0.0.1", "--pass=yield-bench-only", "The wiki", "Admin",
        ],
        environment={"MW_CONFIG_FILE": str(place.path("absent.php"))},
    )  # fmt: skip
    settings = place.path("LocalSettings.php")
    loads = "".join(f"wfLoadExtension( '{name}' );\n" for name in EXTENSIONS)
    with settings.open("a") as opened:
        opened.write(SETTINGS.replace("{folder}", str(place.folder)) + loads)
    dump = place.write("pages.xml", "".join(_dump(dt.datetime.now(dt.UTC))))
    place.hand_over()
    steps = (
        ("importDump.php", dump),
        ("rebuildrecentchanges.php",),
        ("initSiteStats.php", "--update"),
    )
    for script, *more in steps:
        words = [*php, code / "maintenance" / script, *more]
        place.run(words, environment={"MW_CONFIG_FILE": str(settings)})
    return _truth(place)


def serve_wiki(place: Place, port: int) -> None:
    php = _serve_php(place)
    settings, code = place.path("LocalSettings.php"), file("usr/share/mediawiki")
    serve(place, port, f'DocumentRoot "{code}"\nSetEnv MW_CONFIG_FILE "{settings}"\n{php}')


def keys_of(target: str) -> Iterable[str]:
    """Return the title of the page that a target shows in its current version."""
    path, query = query_of(target)
    if OTHER_VIEWS & query.keys() or query.get("action", "view") not in VIEWS:
        return ()
    if path.startswith("/index.php/"):
        return (title_of(path.removeprefix("/index.php/")),)
    return (title_of(query["title"]),) if path == "/index.php" and "title" in query else ()


def title_of(text: str) -> str:
    """Return a title in the database's form: underscores, and a capital letter per part."""
    text = text.strip(" _").replace(" ", "_")
    space, colon, name = text.partition(":")
    if colon and f"{space.capitalize()}:" in NAMESPACES.values():
        return f"{space.capitalize()}:{name.lstrip('_')[:1].upper()}{name.lstrip('_')[1:]}"
    return text[:1].upper() + text[1:]


def _truth(place: Place) -> Truth:
    with contextlib.closing(sqlite3.connect(place.path("data/wiki.sqlite"))) as database:
        pages = database.execute(
            "SELECT page_id, page_namespace, page_title, page_is_redirect FROM page"
        ).fetchall()
        leads = database.execute("SELECT rd_from, rd_namespace, rd_title FROM redirect").fetchall()
    names = {
        number: NAMESPACES[space] + _text(title)
        for number, space, title, _ in pages
        if space in NAMESPACES
    }
    return Truth(
        articles=frozenset(names[number] for number, space, _, redirect in pages
                           if space in NAMESPACES and not redirect),
        aliases={names[number]: NAMESPACES[space] + _text(title)
                 for number, space, title in leads if number in names and space in NAMESPACES},
    )  # fmt: skip


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _dump(now: dt.datetime) -> Iterator[str]:
    """Yield all pages as a wiki export. Edits end today, as in an active wiki."""
    space = "http://www.mediawiki.org/xml/export-0.11/"
    yield f'<mediawiki xmlns="{space}" version="0.11" xml:lang="en">'
    for number in range(ARTICLES):
        yield _page(0, texts.title(number), [_article(number, n) for n in range(REVISIONS)], now)
    for number in range(TALKS):
        yield _page(1, f"Talk:{texts.title(number * 5)}", [_talk(number)], now)
    for number in range(CATEGORIES):
        parent = f"\n[[Category:Topic {(number - 1) // 4}]]" if number else ""
        text = texts.paragraph(Random(f"category {number}")) + parent
        yield _page(14, f"Category:Topic {number}", [text], now)
    for number in range(REDIRECTS):
        text = f"#REDIRECT [[{texts.title(number * 13)}]]"
        yield _page(0, f"{texts.title(number * 13)} (short)", [text], now)
    yield "</mediawiki>"


def _page(space: int, title: str, revisions: list[str], now: dt.datetime) -> str:
    random = Random(f"edits {title}")
    hours = sorted((random.uniform(1, 1_500) for _ in revisions), reverse=True)
    edits = "".join(
        f"<revision><timestamp>{now - dt.timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}</timestamp>"
        f"<contributor><username>Editor{random.randrange(12)}</username></contributor>"
        f"<comment>{escape(texts.sentence(random))}</comment><model>wikitext</model>"
        f'<format>text/x-wiki</format><text xml:space="preserve">{escape(text)}</text></revision>'
        for hour, text in zip(hours, revisions, strict=True)
    )
    return f"<page><title>{escape(title)}</title><ns>{space}</ns>{edits}</page>\n"


def _article(number: int, revision: int) -> str:
    """Write an article: sections, links, notes and categories. Each revision adds a paragraph."""
    random = Random(f"article {number}")
    parts = [f"'''{texts.title(number)}''' {texts.paragraph(random)}"]
    for section in range(random.randint(2, 5)):
        parts.append(f"== {texts.title(random.randrange(3_000, 9_000))} ==")
        for _ in range(random.randint(1, 3)):
            link = texts.title(_linked(number, random))
            note = f"<ref>{texts.sentence(random)}</ref>" * (random.random() < 0.5)
            parts.append(f"{texts.paragraph(random)} See [[{link}]].{note}")
        if section == 1 and random.random() < 0.2:
            parts.append(
                f"A page on [[{texts.title(random.randrange(20_000, 20_400))}]] is missing."
            )
    parts += [texts.paragraph(Random(f"{number} {later}")) for later in range(revision)]
    parts.append("== Notes ==\n<references />")
    topics = random.sample(range(CATEGORIES), random.randint(1, 3))
    parts.append("\n".join(f"[[Category:Topic {topic}]]" for topic in topics))
    return "\n\n".join(parts)


def _talk(number: int) -> str:
    random = Random(f"talk {number}")
    return f"== {texts.sentence(random)} ==\n{texts.paragraph(random)}\n:{texts.paragraph(random)}"


def _linked(number: int, random: Random) -> int:
    """Choose an article to link: often a near one, otherwise an early one more likely."""
    if random.random() < 0.4:
        return (number + random.randint(1, 12)) % ARTICLES
    return int(ARTICLES * random.random() ** 2)


def _php(place: Place) -> list[str | Path]:
    return [file("usr/bin/php[0-9]*"), "-c", _php_settings(place)]


def _serve_php(place: Place) -> str:
    """Start PHP's workers. Return the configuration that makes Apache use them."""
    port = free_port()
    text = (
        f"[global]\nerror_log = {place.folder}/fpm.log\ndaemonize = no\n"
        f"[www]\nlisten = {ADDRESS}:{port}\npm = static\npm.max_children = {PHP_WORKERS}\n"
        "clear_env = no\ncatch_workers_output = yes\n"
    )
    configuration = place.write("fpm.conf", text)
    place.hand_over()
    fpm = file("usr/sbin/php-fpm[0-9]*")
    place.start([fpm, "-F", "-y", configuration, "-c", _php_settings(place)], port=port)
    return (
        "DirectoryIndex index.php index.html\n"
        f'<FilesMatch "\\.php$">\nSetHandler "proxy:fcgi://{ADDRESS}:{port}"\n</FilesMatch>\n'
        "SetEnvIf Request_URI .* proxy-fcgi-pathinfo=unescape\n"
        f'<Proxy "fcgi://{ADDRESS}:{port}">\nProxySet enablereuse=off\n</Proxy>'
    )


def _php_settings(place: Place) -> Path:
    folder = file("usr/lib/php/20*")
    present = [name for name in PHP_EXTENSIONS.split() if (folder / f"{name}.so").is_file()]
    lines = [f"extension_dir={folder}", f"zend_extension={folder}/opcache.so"]
    lines += [f"extension={folder}/{name}.so" for name in present]
    lines += ["memory_limit=256M", "date.timezone=UTC", "opcache.revalidate_freq=60"]
    lines += [f"sys_temp_dir={place.folder}", f"session.save_path={place.folder}"]
    lines += ["error_reporting=E_ALL & ~E_DEPRECATED & ~E_NOTICE & ~E_WARNING", "log_errors=On"]
    return place.write("php.ini", "\n".join(lines) + "\n")


APPLICATION = Application(
    "mediawiki",
    "MediaWiki",
    prepare,
    serve_wiki,
    keys_of,
    packages=(*(f"php-{name}" for name in PHP), "mediawiki"),
)
