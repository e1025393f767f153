BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"epsilon","order":0.0,"total":"1"}],"leak":"1/1000000","limit":"filter","sort":"basic"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"delta":"0","epsilon":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','7fc5eb603c8b40ceaa2aae7e7504ee6b932194221573b429efb78ddf081aa780',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','leaky',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"1/100000000","epsilon":"1/50"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"delta\": 1e-08, \"epsilon\": 0.02, \"kind\": \"approximate\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","in_session":true,"key":"leaky","kind":"reserved","mechanism":"leaky","number":1,"previous":"7fc5eb603c8b40ceaa2aae7e7504ee6b932194221573b429efb78ddf081aa780","project":null,"purpose":null,"question":"how many, by leaky?","settles":null,"state":{"delta":"1/100000000","epsilon":"1/50"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','9809dfe6f4d4dd4dd288b668bf926fc868454119bdda121f74569044c39183d1',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','leaky',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"delta\": 1e-08, \"epsilon\": 0.02, \"kind\": \"approximate\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"leaky","kind":"committed","mechanism":"leaky","number":2,"previous":"9809dfe6f4d4dd4dd288b668bf926fc868454119bdda121f74569044c39183d1","project":null,"purpose":null,"question":"how many, by leaky?","settles":1,"state":{"delta":"1/100000000","epsilon":"1/50"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','e01f326f128e0c97b946f9e4b7950c37cabd9e4fb67e554592750d073a1d120c','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved','pure',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","epsilon":"1/20"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"pure","kind":"reserved","mechanism":"pure","number":3,"previous":"e01f326f128e0c97b946f9e4b7950c37cabd9e4fb67e554592750d073a1d120c","project":null,"purpose":"report","question":"how many, by pure?","settles":null,"state":{"delta":"1/100000000","epsilon":"7/100"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','326ce4524061ef1cfcdd3d591cd1b0148f13042b274ed024aa9cd992dbd2f2ee',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'326ce4524061ef1cfcdd3d591cd1b0148f13042b274ed024aa9cd992dbd2f2ee');
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
