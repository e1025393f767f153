BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"mu2","order":0.0,"total":"67734817691527951333981/1208925819614629174706176"}],"leak":"0","limit":"filter","sort":"gdp"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"delta":"0","mu2":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','dbe3fe2138cb8ec629f529a8396ce54607a7e1619008381935165d69434a72d3',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','gauss',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","mu2":"1/1600"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","in_session":true,"key":"gauss","kind":"reserved","mechanism":"gauss","number":1,"previous":"dbe3fe2138cb8ec629f529a8396ce54607a7e1619008381935165d69434a72d3","project":null,"purpose":null,"question":"how many, by gauss?","settles":null,"state":{"delta":"0","mu2":"1/1600"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','271d1433f32c6556f4ae2045b01cc0a334e73e3cef4a6984edd85a7020147860',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','gauss',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"gauss","kind":"committed","mechanism":"gauss","number":2,"previous":"271d1433f32c6556f4ae2045b01cc0a334e73e3cef4a6984edd85a7020147860","project":null,"purpose":null,"question":"how many, by gauss?","settles":1,"state":{"delta":"0","mu2":"1/1600"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','e9d9533af6a5ea63386b27cbf4ac5a74ce932d3a5663af31bbaede56cfd3578c','"[0, 41]"');
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,2,'e9d9533af6a5ea63386b27cbf4ac5a74ce932d3a5663af31bbaede56cfd3578c');
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
