create or replace temporary view openmirroring_replica as
    select * from delta.`/lake/it's [odd]/orders` version as of 12
