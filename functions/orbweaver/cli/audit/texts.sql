-- View of one audit: run_text. It needs the table texts.
CREATE OR REPLACE TEMP VIEW run_text AS
SELECT texts.url, texts.text
FROM texts JOIN page ON texts.url = page.url AND texts.crawl = page.crawl
