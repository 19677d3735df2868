"""Django applications: a default project with SQLite, behind Apache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bench.yields.application import CALLER, serve_wsgi

if TYPE_CHECKING:
    from pathlib import Path

    from bench.yields.application import Place

# As written by `django-admin startproject`, except that static files are served without DEBUG, and
# transactions of several processes wait for each other instead of failing.
SETTINGS = """
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
FOLDER = "project"


def filled(place: Place, python: Path, script: str, content: object) -> Any:
    """Fill a project with a script that reads `content`. Return its last line, parsed as JSON."""
    words: list[str | Path] = [place.write("fill.py", script)]
    said = run(place, python, words, text=json.dumps(content))
    place.hand_over()
    return json.loads(said.splitlines()[-1])


def begin(place: Place, python: Path, settings: str, urls: str) -> None:
    """Create a project with further settings and its own URLs, and make its tables."""
    place.write(f"{FOLDER}/settings.py", SETTINGS + settings)
    place.write(f"{FOLDER}/urls.py", urls)
    run(place, python, ["-m", "django", "migrate"])


def run(place: Place, python: Path, words: list[str | Path], text: str = "") -> str:
    environment = {
        "PYTHONPATH": str(place.path(FOLDER)),
        "DJANGO_SETTINGS_MODULE": "settings",
    }
    return place.run([python, *words], environment=environment, text=text, **CALLER)


def serve(place: Place, port: int, python: Path) -> None:
    serve_wsgi(place, port, python, SERVED, place.path(FOLDER))
