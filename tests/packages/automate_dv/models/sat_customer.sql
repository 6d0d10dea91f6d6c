{{ automate_dv.sat(
    src_pk='customer_hk', src_hashdiff='customer_hashdiff', src_payload=['customer_name'],
    src_ldts='loaded', src_source='source', source_model='stage_orders'
) }}
