BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"delta":"1/1000000","discreet":1,"epsilon":"1","lanes":[{"kind":"rho","order":0.0,"total":"13098396987280629371903/604462909807314587353088"}],"leak":"3/4000000","limit":"filter","sort":"zcdp"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"delta":"0","rho":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','1c345748156e870b5054eacba79911a3d26ee48f177101e08b38763693b01d7e',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','rho',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","rho":"2417851639229292759483/1208925819614629174706176"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"delta\": 0.0, \"kind\": \"concentrated\", \"rho\": 0.002, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}, \"xi\": 0.0}}","in_session":true,"key":"rho","kind":"reserved","mechanism":"rho","number":1,"previous":"1c345748156e870b5054eacba79911a3d26ee48f177101e08b38763693b01d7e","project":null,"purpose":null,"question":"how many, by rho?","settles":null,"state":{"delta":"0","rho":"2417851639229292759483/1208925819614629174706176"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','88c2e69a1912b48d44f88d01f0e42d727f60b2b9e60c51b5d4c159dd735b2f93',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','rho',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"delta\": 0.0, \"kind\": \"concentrated\", \"rho\": 0.002, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}, \"xi\": 0.0}}","key":"rho","kind":"committed","mechanism":"rho","number":2,"previous":"88c2e69a1912b48d44f88d01f0e42d727f60b2b9e60c51b5d4c159dd735b2f93","project":null,"purpose":null,"question":"how many, by rho?","settles":1,"state":{"delta":"0","rho":"2417851639229292759483/1208925819614629174706176"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','82a49110bbeab4a145e31b69715ca2c40c8cde8acd0bb6790b592e2c11d1c2cc','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved','gauss',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","rho":"188894659314788496835/604462909807314587353088"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"gauss","kind":"reserved","mechanism":"gauss","number":3,"previous":"82a49110bbeab4a145e31b69715ca2c40c8cde8acd0bb6790b592e2c11d1c2cc","project":null,"purpose":"report","question":"how many, by gauss?","settles":null,"state":{"delta":"0","rho":"2795640957858869753153/1208925819614629174706176"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','8e123ae08b219687353172cbb731d1768941b65a2366221bcc5758b0db6b94b9',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'8e123ae08b219687353172cbb731d1768941b65a2366221bcc5758b0db6b94b9');
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
