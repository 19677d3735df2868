"""WordPress on MariaDB: 300 posts, five pages, tags, categories and 600 threaded comments.

A post or page is found by its permanent URL with any query: the reply link of a comment
(`?replytocom=`) shows the post too. The front page, archives and feeds show extracts.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from bench.yields import packages, texts, web
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.packages import file
from bench.yields.place import ADDRESS, ROOT, free_port

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.yields.place import Place

POSTS, PAGES, TAGS, CATEGORIES, COMMENTS = 300, 4, 20, 3, 600
THEME = "twentytwentyone"
PORT = "YIELD_DATABASE_PORT"
SETTINGS = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', '');
define('DB_HOST', '127.0.0.1:' . getenv('YIELD_DATABASE_PORT')); define('DB_CHARSET', 'utf8mb4');
$host = 'http://' . ($_SERVER['HTTP_HOST'] ?? '127.0.0.1');
define('WP_HOME', $host); define('WP_SITEURL', $host);
define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name) {
    define($name . '_KEY', 'yield'); define($name . '_SALT', 'yield');
}
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
SEED = """<?php
$database = new mysqli('127.0.0.1', 'root', '', '', (int) getenv('YIELD_DATABASE_PORT'));
$database->query('CREATE DATABASE wordpress CHARACTER SET utf8mb4');
define('WP_INSTALLING', true);
require __DIR__ . '/code/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
wp_install('The blog', 'editor', 'editor@example.org', true, '', 'yield-bench-only');
update_option('permalink_structure', '/%year%/%monthnum%/%postname%/');
update_option('comment_moderation', 0); update_option('comment_previously_approved', 0);
switch_theme('twentytwentyone');
$GLOBALS['wp_rewrite']->init(); create_initial_taxonomies();
$GLOBALS['wp_rewrite']->flush_rules();
$content = json_decode(file_get_contents(__DIR__ . '/content.json'), true);
$categories = array_map(fn($name) => wp_create_category($name), $content['categories']);
$posts = [];
foreach ($content['posts'] as $post) {
    if (isset($post['category'])) $post['post_category'] = [$categories[$post['category']]];
    $posts[] = wp_insert_post($post, true);
}
$comments = [];
foreach ($content['comments'] as $comment) {
    $comment['comment_post_ID'] = $posts[$comment['post']];
    $parent = $comment['parent'] === null ? null : $comments[$comment['parent']];
    if ($parent) { $comment['comment_parent'] = $parent; }
    $comments[] = wp_insert_comment($comment);
}
$all = ['numberposts' => -1, 'post_type' => ['post', 'page'], 'post_status' => 'publish'];
$rows = get_posts($all);
echo "\\n", json_encode(array_map(fn($post) => get_permalink($post), $rows)), "\\n";
"""


def prepare(place: Place) -> Truth:
    """Install the blog, fill it with its own functions, and ask it for all permanent URLs."""
    shutil.copytree(file("usr/share/wordpress"), place.path("code"), symlinks=True)
    for theme in (ROOT / "usr/share/wordpress/wp-content/themes", ROOT / "var/lib/wordpress"):
        if (found := next(iter(theme.rglob(THEME)), None)) is not None:
            target = place.path(f"code/wp-content/themes/{THEME}")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(found, target, symlinks=True)
    place.write("code/wp-config.php", SETTINGS)
    place.write("seed.php", SEED)
    place.write("content.json", json.dumps(_content(dt.datetime.now(dt.UTC))))
    place.path("database").mkdir()
    place.hand_over()
    install: list[str | Path] = [
        file("usr/bin/mariadb-install-db"),
        "--no-defaults",
        f"--basedir={ROOT / 'usr'}",
    ]
    place.run([*install, f"--datadir={place.path('database')}", "--skip-test-db"])
    port = _serve_database(place)
    php = web.php(place)
    said = place.run([*php, place.path("seed.php")], environment={PORT: str(port)})
    paths = (unquote(urlsplit(url).path) for url in json.loads(said.strip().splitlines()[-1]))
    return Truth(articles=frozenset(paths))


def serve(place: Place, port: int) -> None:
    os.environ[PORT] = str(_serve_database(place))
    php = web.serve_php(place)
    site = f'DocumentRoot "{place.path("code")}"\n{php}\nFallbackResource /index.php'
    web.serve(place, port, site)


def keys_of(target: str) -> Iterable[str]:
    """Return the path of the post or page, on any of its comment pages."""
    path = query_of(target)[0]
    front, comments, _ = path.partition("comment-page-")
    return (front if comments else path,)


def _serve_database(place: Place) -> int:
    """Start the database on 127.0.0.1, without passwords, while it is needed."""
    port = free_port()
    folder = place.path("database")
    words: list[str | Path] = [
        file("usr/sbin/mariadbd"),
        "--no-defaults",
        f"--basedir={ROOT / 'usr'}",
    ]
    words += [f"--datadir={folder}", f"--port={port}", f"--bind-address={ADDRESS}"]
    words += [f"--socket=/tmp/orbweaver-yield-{port}.sock", f"--pid-file={folder}/pid"]
    words += [f"--lc-messages-dir={ROOT / 'usr/share/mysql'}", "--skip-grant-tables"]
    place.start([*words, "--skip-networking=0", "--innodb-buffer-pool-size=64M"], port=port)
    return port


def _content(now: dt.datetime) -> dict[str, Any]:
    """Make posts, pages and comments. Posts are dated back from today, one every thirty hours."""
    random = Random("blog")
    posts: list[dict[str, Any]] = [
        {
            "post_title": texts.title(number),
            "post_content": "\n\n".join(
                f"<p>{texts.paragraph(random)}</p>" for _ in range(random.randint(3, 8))
            ),
            "post_status": "publish",
            "post_author": 1,
            "post_date": f"{now - dt.timedelta(hours=30 * number + 1):%Y-%m-%d %H:%M:%S}",
            "tags_input": [f"tag {tag}" for tag in random.sample(range(TAGS), 3)],
            "category": random.randrange(CATEGORIES),
        }
        for number in range(POSTS)
    ]
    posts += [
        {
            "post_type": "page",
            "post_title": texts.title(9_000 + number),
            "post_content": f"<p>{texts.paragraph(random)}</p>",
            "post_status": "publish",
            "post_author": 1,
        }
        for number in range(PAGES)
    ]
    comments: list[dict[str, Any]] = []
    for number in range(COMMENTS):
        # Every second comment answers the previous one.
        answers = number % 2 == 1
        comments.append(
            {
                "post": comments[-1]["post"] if answers else random.randrange(POSTS),
                "parent": number - 1 if answers else None,
                "comment_author": f"Reader {random.randrange(40)}",
                "comment_author_email": "reader@example.org",
                "comment_content": texts.paragraph(random),
                "comment_approved": 1,
            }
        )
    names = [f"Category {number}" for number in range(CATEGORIES)]
    return {"posts": posts, "comments": comments, "categories": names}


APPLICATION = Application(
    name="wordpress",
    title="WordPress",
    packages=(*packages.PHP, "wordpress", "wordpress-theme-twentytwentyone", "mariadb-server"),
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
