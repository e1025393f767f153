BEGIN TRANSACTION;
CREATE TABLE ledger_entries (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT,
    settles INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    answer TEXT);
INSERT INTO "ledger_entries" VALUES(0,'open',NULL,NULL,'{"about":{"dataset":"visits","ledger":"00000000000000000000000000000000","limit":{"delta":"0","discreet":1,"epsilon":null,"lanes":[{"kind":"rho","order":0.0,"total":"1/2"}],"leak":"0","limit":"filter","sort":"zcdp"},"unit":{"protects":"patient","relation":"add-remove"}},"analyst":null,"answer":null,"cost":null,"guarantee":null,"key":null,"kind":"open","mechanism":null,"number":0,"previous":"0000000000000000000000000000000000000000000000000000000000000000","project":null,"purpose":null,"question":null,"settles":null,"state":{"delta":"0","rho":"0"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','213ffa224bd42cc25798a80f930bea00b1f9f336207d41ddef36731b7a7dede2',NULL);
INSERT INTO "ledger_entries" VALUES(1,'reserved','rho',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","rho":"2417851639229292759483/1208925819614629174706176"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"delta\": 0.0, \"kind\": \"concentrated\", \"rho\": 0.002, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}, \"xi\": 0.0}}","in_session":true,"key":"rho","kind":"reserved","mechanism":"rho","number":1,"previous":"213ffa224bd42cc25798a80f930bea00b1f9f336207d41ddef36731b7a7dede2","project":null,"purpose":null,"question":"how many, by rho?","settles":null,"state":{"delta":"0","rho":"2417851639229292759483/1208925819614629174706176"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','3fe7265453f61c8279754e19a859ca2789e2dc0bb0af9594875cb6f853d07bdc',NULL);
INSERT INTO "ledger_entries" VALUES(2,'committed','rho',1,'{"about":null,"analyst":null,"answer":"32f2570b40b849d63898eaec402d01f0cef1369022ea27873d8fd9e48acd92b1","cost":null,"guarantee":"{\"discreet\": 1, \"guarantee\": {\"delta\": 0.0, \"kind\": \"concentrated\", \"rho\": 0.002, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}, \"xi\": 0.0}}","key":"rho","kind":"committed","mechanism":"rho","number":2,"previous":"3fe7265453f61c8279754e19a859ca2789e2dc0bb0af9594875cb6f853d07bdc","project":null,"purpose":null,"question":"how many, by rho?","settles":1,"state":{"delta":"0","rho":"2417851639229292759483/1208925819614629174706176"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','079389e486443ed649e724a5c8f59986742826c5149a21f1111e13d3acec55f9','"[0, 41]"');
INSERT INTO "ledger_entries" VALUES(3,'reserved','gauss',NULL,'{"about":null,"analyst":null,"answer":null,"cost":{"ways":[[{"amounts":{"delta":"0","rho":"188894659314788496835/604462909807314587353088"},"row":"plain"}]]},"guarantee":"{\"discreet\": 1, \"guarantee\": {\"kind\": \"gaussian\", \"noise\": 40.0, \"unit\": {\"protects\": \"patient\", \"relation\": \"add-remove\"}}}","key":"gauss","kind":"reserved","mechanism":"gauss","number":3,"previous":"079389e486443ed649e724a5c8f59986742826c5149a21f1111e13d3acec55f9","project":null,"purpose":"report","question":"how many, by gauss?","settles":null,"state":{"delta":"0","rho":"2795640957858869753153/1208925819614629174706176"},"time":"2026-03-01T10:05:00.000000+00:00","version":"0.1.0"}','4e5803ad1cbfcc77ef0be7694bcbc4875001c36d19d8e1d3133c28c9df395f4a',NULL);
CREATE TABLE ledger_head (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, hash TEXT NOT NULL);
INSERT INTO "ledger_head" VALUES(1,3,'4e5803ad1cbfcc77ef0be7694bcbc4875001c36d19d8e1d3133c28c9df395f4a');
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
