BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"discreet":1,"limit":"plan","slots":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"composed\", \"parts\": [{\"count\": 1, \"of\": {\"kind\": \"laplace\", \"scale\": 20.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}, {\"count\": 5, \"of\": {\"kind\": \"gaussian\", \"noise\": 10.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}]}}","within":"{\"discreet\": 1, \"guarantee\": {\"delta\": 1e-06, \"epsilon\": 1.0, \"kind\": \"approximate\", \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"slot 0":"0","slot 1":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','03fdba9b966ac2aebe79e7cebd07d345f5f4f7e380a201e023b7eac984044aae',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','gauss',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"slot 0":"1"},"row":"gaussian(noise=40.0, unit=''patient'')"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","in_session":true,"key":"gauss","kind":"reserved","mechanism":"gauss","number":1,"previous":"03fdba9b966ac2aebe79e7cebd07d345f5f4f7e380a201e023b7eac984044aae","project":null,"purpose":null,"question":"how many, by gauss?","settles":null,"state":{"slot 0":"1","slot 1":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','a1a76fafa3ffee34464e493f924bb5b3d0362feee9328d45b4b01a18d7fea389',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','gauss',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"gauss","kind":"committed","mechanism":"gauss","number":2,"previous":"a1a76fafa3ffee34464e493f924bb5b3d0362feee9328d45b4b01a18d7fea389","project":null,"purpose":null,"question":"how many, by gauss?","settles":1,"state":{"slot 0":"1","slot 1":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','86cf85967d8682176284164e881ef113926f97f62d42280ec2e8c57a917d03e2','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved','laplace',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"slot 1":"1"},"row":"laplace(scale=20.0, unit=''patient'')"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"laplace\", \"scale\": 20.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"laplace","kind":"reserved","mechanism":"laplace","number":3,"previous":"86cf85967d8682176284164e881ef113926f97f62d42280ec2e8c57a917d03e2","project":null,"purpose":"report","question":"how many, by laplace?","settles":null,"state":{"slot 0":"1","slot 1":"1"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','45af18f74593ece6c2b52ab438339886a37e2964be815d65855fcdb8197728c0',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'45af18f74593ece6c2b52ab438339886a37e2964be815d65855fcdb8197728c0');
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
