select
    DBT_INTERNAL_DEST.`id` as `id`,
    DBT_INTERNAL_DEST.`dbt_scd_id` as `dbt_scd_id`,
    case when DBT_INTERNAL_SOURCE.dbt_change_type is not null
      then DBT_INTERNAL_SOURCE.`dbt_valid_to` else DBT_INTERNAL_DEST.`dbt_valid_to` end as `dbt_valid_to`
  from (select * from `shop`.`orders` where false) as DBT_INTERNAL_DEST
  left join (select * from `shop`.`new_rows` where dbt_change_type in ('update', 'delete')) as DBT_INTERNAL_SOURCE
    on DBT_INTERNAL_SOURCE.`dbt_scd_id` = DBT_INTERNAL_DEST.`dbt_scd_id`
    and (DBT_INTERNAL_DEST.`dbt_valid_to` is null or DBT_INTERNAL_DEST.`dbt_valid_to` = to_date('9999-12-31'))
  union all
  select
    DBT_INTERNAL_SOURCE.`id` as `id`,
    DBT_INTERNAL_SOURCE.`dbt_scd_id` as `dbt_scd_id`,
    DBT_INTERNAL_SOURCE.`dbt_valid_to` as `dbt_valid_to`
  from (select * from `shop`.`new_rows` where dbt_change_type = 'insert') as DBT_INTERNAL_SOURCE
  left anti join (select * from `shop`.`orders` where false) as DBT_INTERNAL_DEST on DBT_INTERNAL_SOURCE.`dbt_scd_id` = DBT_INTERNAL_DEST.`dbt_scd_id`
