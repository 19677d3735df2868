"""Builds one shop in eight frameworks, with their own tools. Only scripts fill its pages.

    python -m bench.framework_shops FOLDER [NAME…]    writes sources below FOLDER, and builds

A shop shows the data of `/api/products`: a list of links that arrives in three parts with timers
between them, and a page per product with name, price, description and related products. The
packages are the registry's newest at build time; `FOLDER/NAME/package-lock.json` records them. Real
applications (`APPLICATIONS`) are installed from their packages.
"""

# ruff: noqa: E501 - sources in other languages, as their own tools would write them
from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench import package_registry

# All shops use it. It shows the server's data, in parts.
_DATA = """
export async function load(show) {
  const [, kind, id] = location.pathname.split('/');
  if (kind === 'product') {
    const one = await (await fetch('/api/products/' + id)).json();
    document.title = one.name;
    show({ one });
    return;
  }
  document.title = 'Shop';
  let list = [];
  for (let part = 0; part < 3; part += 1) {
    list = [...list, ...await (await fetch('/api/products?part=' + part)).json()];
    show({ list });
    await new Promise((done) => setTimeout(done, 300));
  }
}
"""
_INDEX = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title></head>'
    '<body><div id="app"></div><script type="module" src="/src/{main}"></script></body></html>'
)
_REACT = """
import { useEffect, useState } from 'HOOKS';
RENDER_IMPORT
import { load } from './data.js';
function App() {
  const [view, show] = useState(null);
  useEffect(() => { load(show); }, []);
  if (!view) return <p>Loading</p>;
  if (view.list) return <ul>{view.list.map((p) => <li key={p.id}><a href={'/product/' + p.id}>{p.name}</a></li>)}</ul>;
  const one = view.one;
  return <article><h1>{one.name}</h1><p className="price">{one.price}</p><p className="description">{one.description}</p>
    <nav>{one.related.map((id) => <a key={id} href={'/product/' + id}>Product {id}</a>)}</nav></article>;
}
RENDER
"""
_VUE = """
<script setup>
import { ref } from 'vue';
import { load } from './data.js';
const view = ref(null);
load((now) => { view.value = now; });
</script>
<template>
  <p v-if="!view">Loading</p>
  <ul v-else-if="view.list"><li v-for="p in view.list" :key="p.id"><a :href="'/product/' + p.id">{{ p.name }}</a></li></ul>
  <article v-else><h1>{{ view.one.name }}</h1><p class="price">{{ view.one.price }}</p>
    <p class="description">{{ view.one.description }}</p>
    <nav><a v-for="id in view.one.related" :key="id" :href="'/product/' + id">Product {{ id }}</a></nav></article>
</template>
"""
_SVELTE = """
<script>
  import { load } from './data.js';
  let view = $state(null);
  load((now) => { view = now; });
</script>
{#if !view}<p>Loading</p>
{:else if view.list}<ul>{#each view.list as p (p.id)}<li><a href={'/product/' + p.id}>{p.name}</a></li>{/each}</ul>
{:else}<article><h1>{view.one.name}</h1><p class="price">{view.one.price}</p>
  <p class="description">{view.one.description}</p>
  <nav>{#each view.one.related as id (id)}<a href={'/product/' + id}>Product {id}</a>{/each}</nav></article>{/if}
"""
_SOLID = """
import { createSignal, For, Show } from 'solid-js';
import { render } from 'solid-js/web';
import { load } from './data.js';
function App() {
  const [view, show] = createSignal(null);
  load(show);
  return <Show when={view()} fallback={<p>Loading</p>}>
    <Show when={view().list} fallback={<article><h1>{view().one.name}</h1><p class="price">{view().one.price}</p>
      <p class="description">{view().one.description}</p>
      <nav><For each={view().one.related}>{(id) => <a href={'/product/' + id}>Product {id}</a>}</For></nav></article>}>
      <ul><For each={view().list}>{(p) => <li><a href={'/product/' + p.id}>{p.name}</a></li>}</For></ul>
    </Show></Show>;
}
render(() => <App />, document.getElementById('app'));
"""
_LIT = """
import { LitElement, html } from 'lit';
import { load } from './data.js';
class ShopApp extends LitElement {
  static properties = { view: { state: true } };
  connectedCallback() { super.connectedCallback(); load((now) => { this.view = now; }); }
  render() {
    if (!this.view) return html`<p>Loading</p>`;
    if (this.view.list) return html`<ul>${this.view.list.map((p) => html`<li><a href="/product/${p.id}">${p.name}</a></li>`)}</ul>`;
    const one = this.view.one;
    return html`<article><h1>${one.name}</h1><p class="price">${one.price}</p><p class="description">${one.description}</p>
      <nav>${one.related.map((id) => html`<a href="/product/${id}">Product ${id}</a>`)}</nav></article>`;
  }
}
customElements.define('shop-app', ShopApp);
document.getElementById('app').append(document.createElement('shop-app'));
"""
_ANGULAR = """
import '@angular/compiler';
import { Component, provideZonelessChangeDetection, signal } from '@angular/core';
import { bootstrapApplication } from '@angular/platform-browser';
import { load } from './data.js';
@Component({
  selector: 'app-root',
  template: `@if (!view()) { <p>Loading</p> } @else if (view().list) {
    <ul>@for (p of view().list; track p.id) { <li><a [href]="'/product/' + p.id">{{ p.name }}</a></li> }</ul>
  } @else { <article><h1>{{ view().one.name }}</h1><p class="price">{{ view().one.price }}</p>
    <p class="description">{{ view().one.description }}</p>
    <nav>@for (id of view().one.related; track id) { <a [href]="'/product/' + id">Product {{ id }}</a> }</nav></article> }`,
})
class App {
  view = signal<any>(null);
  constructor() { load((now: any) => this.view.set(now)); }
}
document.getElementById('app')!.append(document.createElement('app-root'));
bootstrapApplication(App, { providers: [provideZonelessChangeDetection()] });
"""
_QWIK = """
import '@builder.io/qwik/qwikloader.js';
import { component$, render, useSignal, useVisibleTask$ } from '@builder.io/qwik';
import { load } from './data.js';
const App = component$(() => {
  const view = useSignal<any>(null);
  // eslint-disable-next-line qwik/no-use-visible-task
  useVisibleTask$(() => { load((now: any) => { view.value = now; }); }, { strategy: 'document-ready' });
  if (!view.value) return <p>Loading</p>;
  if (view.value.list) return <ul>{view.value.list.map((p: any) => <li key={p.id}><a href={'/product/' + p.id}>{p.name}</a></li>)}</ul>;
  const one = view.value.one;
  return <article><h1>{one.name}</h1><p class="price">{one.price}</p><p class="description">{one.description}</p>
    <nav>{one.related.map((id: any) => <a key={id} href={'/product/' + id}>Product {id}</a>)}</nav></article>;
});
render(document.getElementById('app') as HTMLElement, <App />);
"""


def _react(hooks: str, importing: str, render: str) -> str:
    source = _REACT.replace("RENDER_IMPORT", importing).replace("RENDER", render)
    return source.replace("HOOKS", hooks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """Definition of a shop: packages, the plug-in of vite and its call, sources by name."""

    packages: tuple[str, ...]
    sources: dict[str, str]
    plugin: str = ""
    call: str = ""

    @property
    def main(self) -> str:
        return next(iter(self.sources))


FRAMEWORKS = {
    "react": Framework(
        packages=("react", "react-dom", "@vitejs/plugin-react"),
        plugin="import plugin from '@vitejs/plugin-react'",
        call="plugin()",
        sources={
            "main.jsx": _react(
                "react",
                "import { createRoot } from 'react-dom/client';",
                "createRoot(document.getElementById('app')).render(<App />);",
            )
        },
    ),
    "preact": Framework(
        packages=("preact", "@preact/preset-vite"),
        plugin="import plugin from '@preact/preset-vite'",
        call="plugin()",
        sources={
            "main.jsx": _react(
                "preact/hooks",
                "import { render } from 'preact';",
                "render(<App />, document.getElementById('app'));",
            )
        },
    ),
    "vue": Framework(
        packages=("vue", "@vitejs/plugin-vue"),
        plugin="import plugin from '@vitejs/plugin-vue'",
        call="plugin()",
        sources={
            "main.js": "import { createApp } from 'vue';\nimport App from './App.vue';\n"
            "createApp(App).mount('#app');\n",
            "App.vue": _VUE,
        },
    ),
    "svelte": Framework(
        packages=("svelte", "@sveltejs/vite-plugin-svelte"),
        plugin="import { svelte } from '@sveltejs/vite-plugin-svelte'",
        call="svelte()",
        sources={
            "main.js": "import { mount } from 'svelte';\nimport App from './App.svelte';\n"
            "mount(App, { target: document.getElementById('app') });\n",
            "App.svelte": _SVELTE,
        },
    ),
    "solid": Framework(
        packages=("solid-js", "vite-plugin-solid"),
        plugin="import plugin from 'vite-plugin-solid'",
        call="plugin()",
        sources={"main.jsx": _SOLID},
    ),
    "lit": Framework(packages=("lit",), sources={"main.js": _LIT}),
    "angular": Framework(
        packages=(
            *("@angular/core", "@angular/common", "@angular/compiler"),
            *("@angular/platform-browser", "rxjs"),
        ),
        sources={"main.ts": _ANGULAR},
    ),
    "qwik": Framework(
        packages=("@builder.io/qwik",),
        plugin="import { qwikVite } from '@builder.io/qwik/optimizer'",
        call="qwikVite({ csr: true })",
        sources={"main.tsx": _QWIK},
    ),
}
# The vite version for plug-ins that do not support the newest.
_VITE = {"qwik": "vite@6", "angular": "vite@6"}
APPLICATIONS = {
    "swagger-ui": "swagger-ui-dist",
    "redoc": "redoc",
    "docsify": "docsify",
    package_registry.NAME: "verdaccio",
}
# An application requests this package by a tag that some registries lack. This is the version.
_OVERRIDES = {"node-fetch": "2.7.0"}
_TYPESCRIPT = {
    "compilerOptions": {
        "experimentalDecorators": True,
        "useDefineForClassFields": False,
        "target": "ES2022",
        "jsx": "react-jsx",
        "jsxImportSource": "@builder.io/qwik",
    }
}


def build(name: str, folder: Path) -> Path:
    made = FRAMEWORKS[name]
    (folder / "src").mkdir(parents=True, exist_ok=True)
    for file, source in {**made.sources, "data.js": _DATA}.items():
        (folder / "src" / file).write_text(source)
    (folder / "index.html").write_text(_INDEX.format(main=made.main))
    (folder / "tsconfig.json").write_text(json.dumps(_TYPESCRIPT))
    package = {"name": f"shop-{name}", "private": True, "type": "module"}
    if not (folder / "package.json").exists():
        (folder / "package.json").write_text(json.dumps(package))
    plugins = f"plugins: [{made.call}]" if made.call else ""
    (folder / "vite.config.js").write_text(
        f"import {{ defineConfig }} from 'vite';\n{made.plugin};\nexport default"
        f" defineConfig({{ {plugins} }});\n"
    )
    _npm(folder, "install", "--no-audit", "--no-fund", _VITE.get(name, "vite"), *made.packages)
    subprocess.run(["npx", "vite", "build"], cwd=folder, check=True)  # noqa: S607
    return folder / "dist"


def install(name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "package.json"
    wanted = {"name": f"app-{name}", "private": True, "overrides": _OVERRIDES}
    package.write_text(json.dumps(wanted))
    _npm(folder, "install", "--no-audit", "--no-fund", "--ignore-scripts", APPLICATIONS[name])
    return folder / "node_modules" / APPLICATIONS[name]


def _npm(folder: Path, *arguments: str) -> None:
    subprocess.run(["npm", *arguments], cwd=folder, check=True)  # noqa: S607


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.framework_shops")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=[*FRAMEWORKS, *APPLICATIONS])
    given = parser.parse_args()
    for name in given.names:
        if name in FRAMEWORKS:
            build(name, given.folder / name)
        else:
            install(name, given.folder / name)


if __name__ == "__main__":
    main()
