create or replace temporary view `openmirroring_documented` as
  select 1 as `id`, 'a' as `status`
