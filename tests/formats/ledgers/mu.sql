BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"delta":"0","discreet":1,"epsilon":null,"lanes":[{"kind":"mu2","order":0.0,"total":"1"}],"leak":"0","limit":"filter","sort":"gdp"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"delta":"0","mu2":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','5371bcfa7e032e8e19b812a16071daa6a80eaef1ed8b1ae43b769141d2770302',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','gauss',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","mu2":"1/1600"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","in_session":true,"key":"gauss","kind":"reserved","mechanism":"gauss","number":1,"previous":"5371bcfa7e032e8e19b812a16071daa6a80eaef1ed8b1ae43b769141d2770302","project":null,"purpose":null,"question":"how many, by gauss?","settles":null,"state":{"delta":"0","mu2":"1/1600"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','273bfe5f4991c599b30ae1a547940e83f2e244f342d3f22c3388687d6dfe2e31',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','gauss',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"gauss","kind":"committed","mechanism":"gauss","number":2,"previous":"273bfe5f4991c599b30ae1a547940e83f2e244f342d3f22c3388687d6dfe2e31","project":null,"purpose":null,"question":"how many, by gauss?","settles":1,"state":{"delta":"0","mu2":"1/1600"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','ae1dbfcf6ca6ca0707f8baf04c3b31f746bb0a1d6b3fd24f469942e29705d471','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved','pure',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","mu2":"89668599935066891574881734579760768559155625/22835963083295358096932575511191922182123945984"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"epsilon\": 0.05, \"kind\": \"pure\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"pure","kind":"reserved","mechanism":"pure","number":3,"previous":"ae1dbfcf6ca6ca0707f8baf04c3b31f746bb0a1d6b3fd24f469942e29705d471","project":null,"purpose":"report","question":"how many, by pure?","settles":null,"state":{"delta":"0","mu2":"2598526921553162259636614856856392998074577281/570899077082383952423314387779798054553098649600"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','33c7924a2096ec1bcb346c2750f3241e16a2c40359134187d3e75e9da3519fe2',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'33c7924a2096ec1bcb346c2750f3241e16a2c40359134187d3e75e9da3519fe2');
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
