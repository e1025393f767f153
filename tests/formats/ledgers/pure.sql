BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"delta":"0","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"}],"leak":"0","limit":"filter","sort":"pure"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"delta":"0","epsilon":"0"},"time":"2026-03-01T10:01:00.000000+00:00","version":"0.1.0"}','2bbed17e02e05a423433fa7d6d09c0ac702397e3d3c29aff074f0b329cde4eaa',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','pure',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","epsilon":"1/20"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","in_session":true,"key":"pure","kind":"reserved","mechanism":"pure","number":1,"previous":"2bbed17e02e05a423433fa7d6d09c0ac702397e3d3c29aff074f0b329cde4eaa","project":null,"purpose":null,"question":"how many, by pure?","settles":null,"state":{"delta":"0","epsilon":"1/20"},"time":"2026-03-01T10:02:00.000000+00:00","version":"0.1.0"}','51f7e66cadd61552317c3c6e7a6174f9b9f4a23bf62c491b93260423d1bc91ce',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','pure',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"pure","kind":"committed","mechanism":"pure","number":2,"previous":"51f7e66cadd61552317c3c6e7a6174f9b9f4a23bf62c491b93260423d1bc91ce","project":null,"purpose":null,"question":"how many, by pure?","settles":1,"state":{"delta":"0","epsilon":"1/20"},"time":"2026-03-01T10:03:00.000000+00:00","version":"0.1.0"}','ef49d624612cf68a46f7aa2031a369ba41bf77d7d69e8c4cf1fe0e47d6c70504','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved','laplace',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","epsilon":"1/20"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"laplace\", \"scale\": 20.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"laplace","kind":"reserved","mechanism":"laplace","number":3,"previous":"ef49d624612cf68a46f7aa2031a369ba41bf77d7d69e8c4cf1fe0e47d6c70504","project":null,"purpose":"report","question":"how many, by laplace?","settles":null,"state":{"delta":"0","epsilon":"1/10"},"time":"2026-03-01T10:04:00.000000+00:00","version":"0.1.0"}','0dc27826fe6421c2e21810127784568aedfb1ee0719fb1ae9dacae617825dd56',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'0dc27826fe6421c2e21810127784568aedfb1ee0719fb1ae9dacae617825dd56');
CREATE INDEX ledger_asked ON ledger_entries (key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX ledger_answered ON ledger_entries (key) WHERE kind = 'committed';
CREATE UNIQUE INDEX ledger_settled ON ledger_entries (settles) WHERE settles IS NOT NULL;
CREATE TRIGGER ledger_never_changed BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_never_removed BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_in_order BEFORE INSERT ON ledger_entries
    WHEN NEW.number IS NOT (SELECT number + 1 FROM ledger_head) BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_head_goes_forward BEFORE UPDATE ON ledger_head
    WHEN NEW.number IS NOT OLD.number + 1 BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER ledger_head_stays BEFORE DELETE ON ledger_head BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
COMMIT;
PRAGMA application_id = 1685283700;
PRAGMA user_version = 1;
