"""Machina, a forum from PyPI: topics with fifteen posts per page, and a URL for each post.

Its set-up follows its manual and example: a default Django project with SQLite. Users without a
log-in may only read. An article is a page of a topic, which the URLs of its posts show too, or the
first page of a forum.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

from bench.serving import CALLER, installed
from bench.yields import texts
from bench.yields.application import Application, serve_wsgi
from bench.yields.judging import Truth, query_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.serving import Place

MACHINA = ("django-machina==1.3.1", "django==5.2.19")
CATEGORIES, FORUMS, TOPICS, MEMBERS, LONGEST, DAYS = 3, 12, 500, 90, 30, 730
# As written by `django-admin startproject`, except that static files are served without DEBUG, and
# transactions of several processes wait for each other instead of failing.
DJANGO = """
from pathlib import Path
BASE_DIR = Path(__file__).resolve().parent
SECRET_KEY = "of no one but this machine"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
CONTEXT = TEMPLATES[0]["OPTIONS"]["context_processors"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "db.sqlite3",
        "OPTIONS": {"timeout": 60, "transaction_mode": "IMMEDIATE"},
    }
}
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
MEDIA_URL = "media/"
MEDIA_ROOT = BASE_DIR / "media"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
SITE_ID = 1
"""
SERVED = """
import os, sys
sys.path.insert(0, sys.argv[3])
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.wsgi import get_wsgi_application
application = StaticFilesHandler(get_wsgi_application())
"""
SETTINGS = """
from machina import MACHINA_MAIN_STATIC_DIR, MACHINA_MAIN_TEMPLATE_DIR
INSTALLED_APPS += [
    "django.contrib.sites",
    "mptt",
    "haystack",
    "widget_tweaks",
    "machina",
    "machina.apps.forum",
    "machina.apps.forum_conversation",
    "machina.apps.forum_conversation.forum_attachments",
    "machina.apps.forum_conversation.forum_polls",
    "machina.apps.forum_feeds",
    "machina.apps.forum_moderation",
    "machina.apps.forum_search",
    "machina.apps.forum_tracking",
    "machina.apps.forum_member",
    "machina.apps.forum_permission",
]
MIDDLEWARE += ["machina.apps.forum_permission.middleware.ForumPermissionMiddleware"]
TEMPLATES[0]["DIRS"] += [MACHINA_MAIN_TEMPLATE_DIR]
CONTEXT += ["machina.core.context_processors.metadata"]
STATICFILES_DIRS = [MACHINA_MAIN_STATIC_DIR]
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "machina_attachments": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": BASE_DIR / "attachments",
    },
}
HAYSTACK_CONNECTIONS = {
    "default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"},
}
MACHINA_DEFAULT_AUTHENTICATED_USER_FORUM_PERMISSIONS = [
    "can_see_forum",
    "can_read_forum",
    "can_start_new_topics",
    "can_reply_to_topics",
    "can_edit_own_posts",
    "can_post_without_approval",
    "can_create_polls",
    "can_vote_in_polls",
    "can_download_file",
]
"""
URLS = """
from django.contrib import admin
from django.urls import include, path
from machina import urls as machina_urls
urlpatterns = [path("admin/", admin.site.urls), path("", include(machina_urls))]
"""
# Fills the forum with Machina's own models, posts in order of their dates.
FILL = """
import json, sys
from datetime import timedelta
import django
django.setup()
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from machina.conf.settings import TOPIC_POSTS_NUMBER_PER_PAGE as A_PAGE
from machina.core.db.models import get_model
Forum, Profile = get_model("forum", "Forum"), get_model("forum_member", "ForumProfile")
Topic, Post = (get_model("forum_conversation", name) for name in ("Topic", "Post"))
Poll, Option = (get_model("forum_polls", name) for name in ("TopicPoll", "TopicPollOption"))
Known, Allowed = (
    get_model("forum_permission", name) for name in ("ForumPermission", "UserForumPermission"))
for model in (Topic, Post):
    model._meta.get_field("created").auto_now_add = False
    model._meta.get_field("updated").auto_now = False
asked, now = json.load(sys.stdin), timezone.now()
articles, aliases = [], {}
with transaction.atomic():
    for name in ("can_see_forum", "can_read_forum"):
        known = Known.objects.get(codename=name)
        Allowed.objects.create(permission=known, anonymous_user=True, has_perm=True)
    members = [get_user_model().objects.create_user(name) for name in asked["members"]]
    for member, signature in zip(members, asked["signatures"]):
        Profile.objects.create(user=member, signature=signature)
    categories = [
        Forum.objects.create(name=name, type=Forum.FORUM_CAT) for name in asked["categories"]]
    forums = []
    for one in asked["forums"]:
        parent = categories[one["in"]] if one["below"] is None else forums[one["below"]]
        parent.refresh_from_db()
        forums.append(Forum.objects.create(
            name=one["name"], description=one["text"], parent=parent, type=Forum.FORUM_POST))
    articles += [f"forum {forum.pk}" for forum in forums]
    for one in asked["topics"]:
        begun = now - timedelta(minutes=one["posts"][0]["minutes"])
        topic = Topic.objects.create(
            forum=forums[one["forum"]], poster=members[one["posts"][0]["by"]],
            subject=one["title"], type=one["type"], status=Topic.TOPIC_UNLOCKED,
            created=begun, updated=begun)
        for at, said in enumerate(one["posts"]):
            moment = now - timedelta(minutes=said["minutes"])
            post = Post.objects.create(
                topic=topic, poster=members[said["by"]], content=said["text"],
                subject=("Re: " if at else "") + one["title"], created=moment, updated=moment)
            aliases[f"post {post.pk}"] = f"topic {topic.pk} page {at // A_PAGE + 1}"
        if one["poll"]:
            poll = Poll.objects.create(topic=topic, question=one["poll"][0])
            for text in one["poll"][1:]:
                Option.objects.create(poll=poll, text=text)
articles += sorted(set(aliases.values()))
print(json.dumps([articles, aliases]))
"""
FORUM = r"/forum/[^/]+-([0-9]+)/"
SHOWN = re.compile(rf"{FORUM}(?:topic/[^/]+-([0-9]+)/)?")


def prepare(place: Place) -> Truth:
    """Create a project, make its tables, and fill it with a script that reads the content."""
    place.write("project/settings.py", DJANGO + SETTINGS)
    place.write("project/urls.py", URLS)
    fill = place.write("fill.py", FILL)
    python = installed(MACHINA, "machina")
    settings = {
        "PYTHONPATH": str(place.path("project")),
        "DJANGO_SETTINGS_MODULE": "settings",
    }
    place.run([python, "-m", "django", "migrate"], environment=settings, **CALLER)
    said = place.run([python, fill], environment=settings, text=json.dumps(_content()), **CALLER)
    place.hand_over()
    articles, aliases = json.loads(said.splitlines()[-1])
    return Truth(articles=frozenset(articles), aliases=aliases)


def serve(place: Place, port: int) -> None:
    serve_wsgi(place, port, installed(MACHINA, "machina"), SERVED, place.path("project"))


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the topic's page, the post, or the forum that a target shows."""
    path, query = query_of(target)
    found = SHOWN.fullmatch(path)
    if found is None:
        return ()
    forum, topic = found.groups()
    page = query.get("page", "1")
    if topic is None:
        return (f"forum {forum}",) if page == "1" else ()
    return (f"post {query['post']}" if "post" in query else f"topic {topic} page {page}",)


def _content() -> dict[str, Any]:
    """Make the content. A quarter of the forums are subforums."""
    random = Random("machina")
    return {
        "members": [texts.title(1_500 + number).replace(" ", "_") for number in range(MEMBERS)],
        "signatures": [
            texts.title(1_700 + number) if number % 3 == 0 else "" for number in range(MEMBERS)
        ],
        "categories": [texts.title(1_800 + number) for number in range(CATEGORIES)],
        "forums": [
            {
                "name": texts.title(1_850 + number),
                "text": texts.sentence(random),
                "in": number % CATEGORIES,
                "below": number - 9 if number >= 9 else None,
            }
            for number in range(FORUMS)
        ],
        "topics": [_topic(number, random) for number in range(TOPICS)],
    }


def _topic(number: int, random: Random) -> dict[str, Any]:
    """Make a topic. Most have few posts, some many. Posts are hours apart."""
    length = 1 + int(LONGEST * random.random() ** 3)
    minutes = random.randrange(60 * 24 * DAYS)
    posts: list[dict[str, Any]] = []
    for _ in range(length):
        text = "\n\n".join(texts.paragraph(random) for _ in range(random.choice((1, 1, 2, 3))))
        if posts and random.random() < 0.2:
            quoted = random.choice(posts)["text"].split("\n\n")[-1]
            text = f"> {quoted}\n\n{text}"
        posts.append({"by": int(MEMBERS * random.random() ** 2), "minutes": minutes, "text": text})
        minutes -= max(1, random.randrange(minutes // (2 * length) + 2))
    options = [texts.title(1_900 + random.randrange(80)) for _ in range(random.randint(2, 5))]
    return {
        "title": texts.title(number + 6_000 * (number >= len(texts.OTHER_SCRIPTS))),
        "forum": int(FORUMS * random.random() ** 1.5),
        "type": random.choice((0,) * 38 + (1, 2)),
        "poll": [texts.sentence(random)[:100], *options] if number % 20 == 3 else [],
        "posts": posts,
    }


APPLICATION = Application("machina", "Machina", prepare, serve, keys_of)
