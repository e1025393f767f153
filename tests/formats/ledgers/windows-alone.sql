BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"discreet":1,"each":{"delta":"0","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"}],"leak":"0","limit":"filter","sort":"pure"},"length":"2 weeks","lifetime":null,"limit":"windowed"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"window/delta":"0","window/epsilon":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','eb69d1e4a7fe2abf6a5d2e2ab6648b19c69dd7690a4f6de146499240327b3c87',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','pure',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","epsilon":"1/20"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","in_session":true,"key":"pure","kind":"reserved","mechanism":"pure","number":1,"previous":"eb69d1e4a7fe2abf6a5d2e2ab6648b19c69dd7690a4f6de146499240327b3c87","project":null,"purpose":null,"question":"how many, by pure?","settles":null,"state":{"first":"52834","number":"52834","window/delta":"0","window/epsilon":"1/20"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','b5de3d2c06eb6b80b0c952500941e71dc05832771c13bdb086f312239fdf97e2',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','pure',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"pure","kind":"committed","mechanism":"pure","number":2,"previous":"b5de3d2c06eb6b80b0c952500941e71dc05832771c13bdb086f312239fdf97e2","project":null,"purpose":null,"question":"how many, by pure?","settles":1,"state":{"first":"52834","number":"52834","window/delta":"0","window/epsilon":"1/20"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','9c8b411555ad64dcb1a8990fbaa6bb0ac4db90ed014b9bb41b47f1a04518dc73','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved',NULL,NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","epsilon":"1/20"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":null,"kind":"reserved","mechanism":null,"number":3,"previous":"9c8b411555ad64dcb1a8990fbaa6bb0ac4db90ed014b9bb41b47f1a04518dc73","project":null,"purpose":null,"question":"in another window?","settles":null,"state":{"first":"52834","number":"52834","window/delta":"0","window/epsilon":"1/10"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','3de47eb883d40f343b8e9a24c37ab278a48caf8dc89f8ad1f05d6345f4312d52',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'3de47eb883d40f343b8e9a24c37ab278a48caf8dc89f8ad1f05d6345f4312d52');
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
