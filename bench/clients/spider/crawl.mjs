// spider-rs with its own HTTP client and link extraction: `node crawl.mjs URL`. It keeps nothing.
import { createRequire } from "node:module";

const PACKAGE = "@spider-rs/spider-rs-linux-x64-gnu";
const require = createRequire(import.meta.url);
const { Website, pageTitle } = require(PACKAGE);

const got = { pages: 0, titles: 0, bytes: 0 };
const website = new Website(process.argv[2]).withRespectRobotsTxt(true);
await website.crawl((error, page) => {
  if (error) throw error;
  got.pages += 1;
  got.bytes += Buffer.byteLength(page.content);
  got.titles += pageTitle(page).trim() ? 1 : 0;
});
const { version } = require(`${PACKAGE}/package.json`);
const versions = { "spider-rs": version, node: process.versions.node };
// Its threads keep the process alive after the crawl.
process.stdout.write(`${JSON.stringify({ ...got, versions })}\n`, () => process.exit(0));
